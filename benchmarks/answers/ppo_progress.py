"""PPO on CartPole. After each iteration, some episodes show how good the policy is."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from ppo import Agent, collect, gae, update

ENVS, STEPS = 8, 64


def evaluate(agent: Agent, env: gym.Env, episodes: int) -> float:
    returns = []
    for _ in range(episodes):
        obs, _ = env.reset()
        done, total = False, 0.0
        while not done:
            obs, reward, terminated, truncated, _ = env.step(agent.greedy(obs))
            done = terminated or truncated
            total += float(reward)
        returns.append(total)
    return float(np.mean(returns))


def main() -> None:
    options = stopwatch.arguments(140, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    test = gym.make("CartPole-v1", max_episode_steps=100)
    test.reset(seed=options.seed)
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 1e-4)
    every = 10 if options.fix else 1
    scores = []
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for iteration in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), size=128)
        if iteration % every == every - 1:
            with stopwatch.section(), stopwatch.outside():
                scores.append(evaluate(agent, test, 10))
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()
