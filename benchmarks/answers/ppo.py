"""PPO in the style of CleanRL: the agent, the rollout, the advantages and the loss."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self, inputs: int, actions: int, hidden: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.actor = mlp(inputs, actions, hidden, layers)
        self.critic = mlp(inputs, 1, hidden, layers)

    def value(self, obs: Any) -> Any:
        return self.critic(obs).squeeze(-1)

    def act(self, obs: Any) -> Any:
        dist = Categorical(logits=self.actor(obs))
        action = dist.sample()
        return action, dist.log_prob(action), self.critic(obs).squeeze(-1)

    def evaluate(self, obs: Any, action: Any) -> Any:
        dist = Categorical(logits=self.actor(obs))
        return dist.log_prob(action), dist.entropy(), self.value(obs)

    @torch.no_grad()
    def greedy(self, obs: Any) -> int:
        return int(self.actor(torch.from_numpy(obs)).argmax())


def mlp(inputs: int, outputs: int, hidden: int = 64, layers: int = 2) -> nn.Sequential:
    sizes = [inputs, *[hidden] * layers]
    parts: list[nn.Module] = []
    for i, o in pairwise(sizes):
        parts += [nn.Linear(i, o), nn.Tanh()]
    return nn.Sequential(*parts, nn.Linear(hidden, outputs))


@dataclass
class Rollout:
    """What was seen in some steps of all environments; the first axis is time."""

    obs: Any
    actions: Any
    logprobs: Any
    values: Any
    rewards: Any
    dones: Any
    last_value: Any

    @classmethod
    def empty(cls, steps: int, envs: int, inputs: int) -> Rollout:
        actions = torch.zeros(steps, envs, dtype=torch.long)
        rest = (torch.zeros(steps, envs) for _ in range(4))
        return cls(torch.zeros(steps, envs, inputs), actions, *rest, torch.zeros(envs))

    def batch(self, advantages: Any) -> dict[str, Any]:
        return {
            "obs": self.obs.flatten(0, 1),
            "actions": self.actions.flatten(),
            "logprobs": self.logprobs.flatten(),
            "advantages": advantages.flatten(),
            "returns": (advantages + self.values).flatten(),
        }


def collect(envs: Any, agent: Agent, obs: Any, steps: int) -> tuple[Any, Rollout]:
    """Step a vector environment, with the policy called once for all environments."""
    rollout = Rollout.empty(steps, envs.num_envs, obs.shape[-1])
    with torch.no_grad():
        for step in range(steps):
            tensor = torch.from_numpy(obs).float()
            action, rollout.logprobs[step], rollout.values[step] = agent.act(tensor)
            rollout.obs[step], rollout.actions[step] = tensor, action
            obs, reward, terminated, truncated, _ = envs.step(action.numpy())
            rollout.rewards[step] = torch.from_numpy(reward)
            rollout.dones[step] = torch.from_numpy(terminated | truncated)
        rollout.last_value = agent.value(torch.from_numpy(obs).float())
    return obs, rollout


def gae(rollout: Rollout, gamma: float = 0.99, lam: float = 0.95) -> Any:
    """Generalized advantage estimation, with one numpy operation per step for all environments."""
    rewards, values, dones = (x.numpy() for x in (rollout.rewards, rollout.values, rollout.dones))
    advantages = np.zeros_like(rewards)
    following, last = rollout.last_value.numpy(), np.float32(0)
    for t in reversed(range(len(rewards))):
        alive = 1 - dones[t]
        delta = rewards[t] + gamma * following * alive - values[t]
        advantages[t] = last = delta + gamma * lam * alive * last
        following = values[t]
    return torch.from_numpy(advantages)


def ppo_loss(agent: Agent, batch: dict[str, Any], rows: Any) -> Any:
    logprob, entropy, value = agent.evaluate(batch["obs"][rows], batch["actions"][rows])
    advantage = batch["advantages"][rows]
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = (logprob - batch["logprobs"][rows]).exp()
    policy = -torch.min(advantage * ratio, advantage * ratio.clamp(0.8, 1.2)).mean()
    critic = (value - batch["returns"][rows]).pow(2).mean()
    return policy + 0.5 * critic - 0.01 * entropy.mean()


def descend(agent: nn.Module, optimizer: torch.optim.Optimizer, loss: Any) -> None:
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()


def update(
    agent: Agent, optimizer: torch.optim.Optimizer, batch: dict[str, Any], epochs: int = 4, size: int = 256
) -> None:
    for _ in range(epochs):
        for rows in torch.randperm(len(batch["obs"])).split(size):
            descend(agent, optimizer, ppo_loss(agent, batch, rows))
