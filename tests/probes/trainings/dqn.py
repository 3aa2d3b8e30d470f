"""DQN as CleanRL writes it: gradients on while acting, a target network, a replay buffer, an update every few steps."""

from __future__ import annotations

import random
import time

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn import functional


def network():
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


class Replay:
    def __init__(self, size, delay):
        self.rows = np.zeros((size, 11), dtype=np.float32)
        self.used = 0
        self.delay = delay

    def add(self, obs, next_obs, action, reward, done):
        self.rows[self.used] = np.concatenate([obs, next_obs, [action, reward, done]])
        self.used += 1

    def sample(self, count):
        time.sleep(self.delay)
        rows = torch.from_numpy(self.rows[np.random.randint(0, self.used, count)])
        return rows[:, :4], rows[:, 4:8], rows[:, 8:9].long(), rows[:, 9], rows[:, 10]


def train(steps=400, learning_starts=100, train_frequency=4, batch=32, seed=1, delays=None):
    """Returns the network's weights and the returns of the episodes."""
    delays = {"replay": 0.0, **(delays or {})}
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    env = gym.wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1"))
    q_network, target_network = network(), network()
    optimizer = torch.optim.Adam(q_network.parameters(), lr=2.5e-4)
    target_network.load_state_dict(q_network.state_dict())
    replay = Replay(steps, delays["replay"])
    returns = []
    env.action_space.seed(seed)
    obs, _ = env.reset(seed=seed)
    for step in range(steps):
        if random.random() < max(0.05, 1 - step / 200):
            action = int(env.action_space.sample())
        else:
            action = int(torch.argmax(q_network(torch.Tensor(obs[None])), dim=1).item())
        next_obs, reward, terminated, truncated, info = env.step(action)
        replay.add(obs, next_obs, action, reward, terminated)
        obs = next_obs
        if terminated or truncated:
            returns.append(float(info["episode"]["r"]))
            obs, _ = env.reset()
        if step > learning_starts and step % train_frequency == 0:
            b_obs, b_next, b_actions, b_rewards, b_dones = replay.sample(batch)
            with torch.no_grad():
                target, _ = target_network(b_next).max(dim=1)
                target = b_rewards + 0.99 * target * (1 - b_dones)
            old = q_network(b_obs).gather(1, b_actions).squeeze()
            loss = functional.mse_loss(target, old)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                target_network.load_state_dict(q_network.state_dict())
    env.close()
    return [parameter.detach().clone() for parameter in q_network.parameters()], returns
