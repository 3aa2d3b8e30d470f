"""REINFORCE as it is taught: one episode, then one update from the log-probabilities kept with their gradients."""

from __future__ import annotations

import time

import gymnasium as gym
import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(4, 32), nn.Linear(32, 2)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x))).softmax(dim=1)


def train(episodes=8, seed=3, delays=None):
    """Returns the policy's weights and the returns of the episodes."""
    delays = {"returns": 0.0, **(delays or {})}
    torch.manual_seed(seed)
    env = gym.make("CartPole-v1")
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4)
    totals = []
    for episode in range(episodes):
        obs, _ = env.reset(seed=seed + episode)
        log_probs, rewards, done = [], [], False
        while not done:
            distribution = Categorical(policy(torch.from_numpy(obs).unsqueeze(0)))
            action = distribution.sample()
            log_probs.append(distribution.log_prob(action))
            obs, reward, terminated, truncated, _ = env.step(action.item())
            rewards.append(reward)
            done = terminated or truncated
        time.sleep(delays["returns"])
        returns, following = [], 0.0
        for reward in reversed(rewards):
            following = reward + 0.99 * following
            returns.insert(0, following)
        returns = torch.tensor(returns)
        loss = -(torch.cat(log_probs) * (returns - returns.mean())).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        totals.append(sum(rewards))
    env.close()
    return [parameter.detach().clone() for parameter in policy.parameters()], totals
