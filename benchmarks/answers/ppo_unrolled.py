"""PPO with a recurrent policy."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import stopwatch
import torch
from ppo import Rollout, descend, gae
from torch import nn
from torch.distributions import Categorical

ENVS, STEPS, HIDDEN = 8, 64, 64


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, HIDDEN)
        self.actor, self.critic = nn.Linear(HIDDEN, 2), nn.Linear(HIDDEN, 1)

    def heads(self, features: Any) -> Any:
        return Categorical(logits=self.actor(features)), self.critic(features).squeeze(-1)

    def forward(self, obs: Any, state: Any, whole: bool) -> Any:
        """The features of a sequence of observations; the first axis is time."""
        if whole:
            return self.gru(obs, state)[0]
        features = []
        for row in obs:
            output, state = self.gru(row[None], state)
            features.append(output)
        return torch.cat(features)


def collect(envs: Any, agent: Recurrent, obs: Any, state: Any) -> Any:
    rollout = Rollout.empty(STEPS, ENVS, 4)
    for step in range(STEPS):
        rollout.obs[step] = torch.from_numpy(obs)
        output, state = agent.gru(rollout.obs[step][None], state)
        chosen, rollout.values[step] = agent.heads(output[0])
        rollout.actions[step] = action = chosen.sample()
        rollout.logprobs[step] = chosen.log_prob(action)
        obs, reward, terminated, truncated, _ = envs.step(action.numpy())
        rollout.rewards[step] = torch.from_numpy(reward)
        rollout.dones[step] = torch.from_numpy(terminated | truncated)
    output, _ = agent.gru(torch.from_numpy(obs)[None], state)
    rollout.last_value = agent.heads(output[0])[1]
    return obs, state, rollout


def loss_of(features: Any, agent: Recurrent, rollout: Rollout, advantages: Any) -> Any:
    chosen, values = agent.heads(features)
    ratio = (chosen.log_prob(rollout.actions) - rollout.logprobs).exp()
    policy = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
    return policy + 0.5 * (values - advantages - rollout.values).pow(2).mean()


def main() -> None:
    options = stopwatch.arguments(120, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Recurrent()
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    state = torch.zeros(1, ENVS, HIDDEN)
    stopwatch.start()
    for _ in range(options.iterations):
        before = state
        with torch.no_grad():
            obs, state, rollout = collect(envs, agent, obs, state)
        advantages = gae(rollout)
        for _ in range(4):
            with stopwatch.section():
                features = agent(rollout.obs, before, options.fix)
            descend(agent, optimizer, loss_of(features, agent, rollout, advantages))
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()
