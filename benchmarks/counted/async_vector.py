"""A handwritten actor-critic on AsyncVectorEnv. The first argument is the start method of its workers."""

from __future__ import annotations

import sys

import gymnasium as gym
import own
import torch
from parts import descend, make_env, network, returns_of

ENVS, STEPS, ITERATIONS = 2, 64, 20


def main() -> None:
    envs = gym.vector.AsyncVectorEnv([make_env] * ENVS, context=sys.argv[1])
    net = network(4, 3)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    observation, _ = envs.reset(seed=1)
    own.resume()
    for _ in range(ITERATIONS):
        logs, values, rewards = [], [], []
        for _ in range(STEPS):
            out = net(torch.from_numpy(observation))
            policy = torch.distributions.Categorical(logits=out[:, :2])
            action = policy.sample()
            logs.append(policy.log_prob(action))
            values.append(out[:, 2])
            observation, reward, *_ = envs.step(action.numpy())
            rewards.append(torch.from_numpy(reward).float())
            own.steps += ENVS
        error = torch.stack(returns_of(rewards)) - torch.stack(values)
        loss = (-torch.stack(logs) * error.detach()).mean() + error.pow(2).mean()
        descend(optimizer, loss)
        own.iterations += 1
    own.write()
    envs.close()


if __name__ == "__main__":
    main()
