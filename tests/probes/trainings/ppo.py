"""PPO as CleanRL writes it: one file, a vector of environments, a loop. It knows nothing of rlprof.

Delays can be planted in it: seconds by place ("env", "forward", "gae", "optimizer").
"""

from __future__ import annotations

import time

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn.utils import clip_grad_norm_


class Slow(gym.Wrapper):
    def __init__(self, env, seconds):
        super().__init__(env)
        self.seconds = seconds

    def step(self, action):
        time.sleep(self.seconds)
        return super().step(action)


class SlowTanh(nn.Module):
    """Thinks twice about a handful of observations, not about a batch."""

    def __init__(self, seconds, rows):
        super().__init__()
        self.seconds, self.rows = seconds, rows

    def forward(self, x):
        if len(x) == self.rows:
            time.sleep(self.seconds)
        return x.tanh()


class Agent(nn.Module):
    def __init__(self, observations, actions, delay, envs):
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(observations, 64), SlowTanh(delay, envs), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, actions)
        )
        self.critic = nn.Sequential(
            nn.Linear(observations, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
        )

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


class SlowAdam(torch.optim.Adam):
    seconds = 0.0

    def step(self, closure=None):
        time.sleep(self.seconds)
        return super().step(closure)


def make_env(delay):
    def thunk():
        env = gym.wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1"))
        return Slow(env, delay) if delay else env

    return thunk


def train(
    iterations=4, envs=4, steps=32, epochs=2, minibatches=2, seed=1, delays=None, vector=gym.vector.SyncVectorEnv
):
    """Returns the agent's weights and the returns of the episodes."""
    delays = {"env": 0.0, "forward": 0.0, "gae": 0.0, "optimizer": 0.0, **(delays or {})}
    np.random.seed(seed)
    torch.manual_seed(seed)
    vec = vector([make_env(delays["env"] / envs) for _ in range(envs)])
    agent = Agent(4, 2, delays["forward"], envs)
    optimizer = SlowAdam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    optimizer.seconds = delays["optimizer"]
    obs = torch.zeros(steps, envs, 4)
    actions, logprobs, rewards, dones, values = (torch.zeros(steps, envs) for _ in range(5))
    returns_seen = []
    next_obs = torch.Tensor(vec.reset(seed=seed)[0])
    next_done = torch.zeros(envs)
    for _ in range(iterations):
        for step in range(steps):
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
                values[step] = value.flatten()
            actions[step], logprobs[step] = action, logprob
            next_obs, reward, terminated, truncated, infos = vec.step(action.cpu().numpy())
            next_done = torch.Tensor(np.logical_or(terminated, truncated))
            rewards[step] = torch.tensor(reward)
            next_obs = torch.Tensor(next_obs)
            if "episode" in infos:
                returns_seen += [float(r) for r, ended in zip(infos["episode"]["r"], infos["_episode"]) if ended]
        with torch.no_grad():
            next_value = agent.get_value(next_obs).reshape(1, -1)
            time.sleep(delays["gae"])
            advantages = torch.zeros_like(rewards)
            last = 0
            for t in reversed(range(steps)):
                alive = 1.0 - (next_done if t == steps - 1 else dones[t + 1])
                following = next_value if t == steps - 1 else values[t + 1]
                delta = rewards[t] + 0.99 * following * alive - values[t]
                advantages[t] = last = delta + 0.99 * 0.95 * alive * last
            returns = advantages + values
        batch = [x.reshape(-1, *x.shape[2:]) for x in (obs, logprobs, actions, advantages, returns)]
        indices = np.arange(steps * envs)
        for _ in range(epochs):
            np.random.shuffle(indices)
            for chosen in np.split(indices, minibatches):
                b_obs, b_logprobs, b_actions, b_advantages, b_returns = (x[chosen] for x in batch)
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs, b_actions.long())
                ratio = (newlogprob - b_logprobs).exp()
                b_advantages = (b_advantages - b_advantages.mean()) / (b_advantages.std() + 1e-8)
                policy_loss = torch.max(-b_advantages * ratio, -b_advantages * ratio.clamp(0.8, 1.2)).mean()
                loss = policy_loss + 0.5 * ((newvalue.view(-1) - b_returns) ** 2).mean() - 0.01 * entropy.mean()
                optimizer.zero_grad()
                loss.backward()
                clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
    vec.close()
    return [parameter.detach().clone() for parameter in agent.parameters()], returns_seen
