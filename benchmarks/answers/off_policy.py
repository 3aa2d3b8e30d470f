"""DQN and SAC in the style of CleanRL: networks, a replay buffer and the losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional


def q_network(inputs: int, outputs: int, hidden: int = 128) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )


class ReplayBuffer:
    """Arrays that are allocated once."""

    def __init__(self, capacity: int, inputs: int, action_dtype: Any = np.int64, action_shape: Any = ()) -> None:
        self.obs = np.zeros((capacity, inputs), np.float32)
        self.following = np.zeros((capacity, inputs), np.float32)
        self.actions = np.zeros((capacity, *action_shape), action_dtype)
        self.rewards = np.zeros(capacity, np.float32)
        self.dones = np.zeros(capacity, np.float32)
        self.capacity, self.added = capacity, 0

    def add(self, obs: Any, action: Any, reward: Any, following: Any, done: Any) -> None:
        at = self.added % self.capacity
        self.obs[at], self.actions[at], self.rewards[at] = obs, action, reward
        self.following[at], self.dones[at] = following, done
        self.added += 1

    def sample(self, size: int) -> list[Any]:
        return self.rows(np.random.randint(0, min(self.added, self.capacity), size))

    def rows(self, rows: Any) -> list[Any]:
        columns = (self.obs, self.actions, self.rewards, self.following, self.dones)
        return [torch.from_numpy(column[rows]) for column in columns]


def dqn_loss(q: nn.Module, target: nn.Module, batch: Any) -> Any:
    obs, actions, rewards, following, dones = batch
    with torch.no_grad():
        aim = rewards + 0.99 * (1 - dones) * target(following).max(1).values
    return functional.mse_loss(q(obs).gather(1, actions[:, None]).squeeze(1), aim)


def act(q: nn.Module, obs: Any, actions: int, epsilon: float = 0.1) -> int:
    if np.random.random() < epsilon:
        return int(np.random.randint(actions))
    with torch.no_grad():
        return int(q(torch.from_numpy(obs)[None]).argmax())


def descend(optimizer: torch.optim.Optimizer, loss: Any) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def polyak(net: nn.Module, target: nn.Module, tau: float = 0.005) -> None:
    with torch.no_grad():
        torch._foreach_lerp_(list(target.parameters()), list(net.parameters()), tau)


class Actor(nn.Module):
    def __init__(self, inputs: int, actions: int, hidden: int = 128) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mean, self.logstd = nn.Linear(hidden, actions), nn.Linear(hidden, actions)

    def forward(self, obs: Any) -> Any:
        x = self.body(obs)
        dist = torch.distributions.Normal(self.mean(x), self.logstd(x).clamp(-5, 2).exp())
        raw = dist.rsample()
        action = torch.tanh(raw)
        logprob = dist.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action, logprob.sum(-1)


class Sac:
    def __init__(self, inputs: int, actions: int, hidden: int = 128) -> None:
        self.actor = Actor(inputs, actions, hidden)
        self.critics = nn.ModuleList(q_network(inputs + actions, 1, hidden) for _ in range(2))
        self.targets = nn.ModuleList(q_network(inputs + actions, 1, hidden) for _ in range(2))
        self.targets.load_state_dict(self.critics.state_dict())
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), 3e-4)
        self.critic_optimizer = torch.optim.Adam(self.critics.parameters(), 3e-4)

    def act(self, obs: Any) -> Any:
        with torch.no_grad():
            return self.actor(torch.from_numpy(obs)[None])[0][0].numpy()

    def learn(self, batch: Any) -> None:
        obs, actions, rewards, following, dones = batch
        with torch.no_grad():
            chosen, logprob = self.actor(following)
            pair = torch.cat([following, chosen], 1)
            best = torch.min(*(target(pair)[:, 0] for target in self.targets)) - 0.2 * logprob
            aim = rewards + 0.99 * (1 - dones) * best
        pair = torch.cat([obs, actions], 1)
        descend(self.critic_optimizer, sum(functional.mse_loss(q(pair)[:, 0], aim) for q in self.critics))
        chosen, logprob = self.actor(obs)
        pair = torch.cat([obs, chosen], 1)
        descend(self.actor_optimizer, (0.2 * logprob - torch.min(*(q(pair)[:, 0] for q in self.critics))).mean())

    def track(self) -> None:
        polyak(self.critics, self.targets)
