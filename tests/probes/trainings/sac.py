"""Soft actor-critic as CleanRL writes it: an actor and two critics, updated after every step."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn import functional


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 32), nn.Linear(32, 1)

    def forward(self, x, a):
        return self.fc2(functional.relu(self.fc1(torch.cat([x, a], 1))))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc_mean, self.fc_logstd = nn.Linear(3, 32), nn.Linear(32, 1), nn.Linear(32, 1)

    def forward(self, x):
        x = functional.relu(self.fc1(x))
        return self.fc_mean(x), torch.tanh(self.fc_logstd(x))

    def get_action(self, x):
        mean, log_std = self(x)
        normal = torch.distributions.Normal(mean, log_std.exp())
        raw = normal.rsample()
        action = torch.tanh(raw)
        log_prob = normal.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action * 2, log_prob.sum(1, keepdim=True)


def train(steps=120, learning_starts=30, batch=16, seed=1):
    """Returns the networks' weights and the rewards."""
    np.random.seed(seed)
    torch.manual_seed(seed)
    envs = gym.vector.SyncVectorEnv([lambda: gym.make("Pendulum-v1", max_episode_steps=40)])
    actor, q1, q2, q1_target, q2_target = Actor(), Critic(), Critic(), Critic(), Critic()
    q_optimizer = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=1e-3)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
    log_alpha = torch.zeros(1, requires_grad=True)
    alpha_optimizer = torch.optim.Adam([log_alpha], lr=1e-3)
    rows, rewards_seen = [], []
    envs.action_space.seed(seed)
    obs, _ = envs.reset(seed=seed)
    for step in range(steps):
        if step < learning_starts:
            actions = envs.action_space.sample()
        else:
            actions = actor.get_action(torch.Tensor(obs))[0].detach().numpy()
        next_obs, rewards, _, _, _ = envs.step(actions)
        rewards_seen.append(float(rewards[0]))
        rows.append(np.concatenate([obs[0], next_obs[0], actions[0], rewards]))
        obs = next_obs
        if step <= learning_starts:
            continue
        data = torch.Tensor(np.stack([rows[i] for i in np.random.randint(0, len(rows), batch)]))
        b_obs, b_next, b_actions, b_rewards = data[:, :3], data[:, 3:6], data[:, 6:7], data[:, 7:8]
        alpha = log_alpha.exp().item()
        with torch.no_grad():
            next_actions, next_log_pi = actor.get_action(b_next)
            smallest = torch.min(q1_target(b_next, next_actions), q2_target(b_next, next_actions))
            target = b_rewards + 0.99 * (smallest - alpha * next_log_pi)
        q_loss = functional.mse_loss(q1(b_obs, b_actions), target) + functional.mse_loss(q2(b_obs, b_actions), target)
        q_optimizer.zero_grad()
        q_loss.backward()
        q_optimizer.step()
        if step % 2 == 0:
            pi, log_pi = actor.get_action(b_obs)
            actor_loss = (alpha * log_pi - torch.min(q1(b_obs, pi), q2(b_obs, pi))).mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
            with torch.no_grad():
                _, log_pi = actor.get_action(b_obs)
            alpha_loss = (-log_alpha.exp() * (log_pi - 1)).mean()
            alpha_optimizer.zero_grad()
            alpha_loss.backward()
            alpha_optimizer.step()
        for net, copy in ((q1, q1_target), (q2, q2_target)):
            for parameter, slow in zip(net.parameters(), copy.parameters()):
                slow.data.copy_(0.005 * parameter.data + 0.995 * slow.data)
    envs.close()
    weights = [p.detach().clone() for net in (actor, q1, q2) for p in net.parameters()]
    return weights, rewards_seen
