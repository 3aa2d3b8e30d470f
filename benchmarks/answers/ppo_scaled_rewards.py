"""PPO on CartPole with rewards scaled by all rewards so far."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from ppo import Agent, Rollout, gae, update

ENVS, STEPS = 8, 64


class Scaler:
    def __init__(self, running: bool) -> None:
        self.running = running
        self.seen: list[float] = []
        self.count, self.mean, self.squares = 1e-4, 0.0, 0.0

    def __call__(self, rewards: np.ndarray) -> np.ndarray:
        if self.running:
            for reward in rewards:
                self.count += 1
                difference = reward - self.mean
                self.mean += difference / self.count
                self.squares += difference * (reward - self.mean)
            return (rewards - self.mean) / (np.sqrt(self.squares / self.count) + 1e-8)
        self.seen.extend(rewards)
        return (rewards - np.mean(self.seen)) / (np.std(self.seen) + 1e-8)


def main() -> None:
    options = stopwatch.arguments(135, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    scaler = Scaler(running=options.fix)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        rollout = Rollout.empty(STEPS, ENVS, 4)
        for step in range(STEPS):
            tensor = torch.from_numpy(obs)
            with torch.no_grad():
                action, rollout.logprobs[step], rollout.values[step] = agent.act(tensor)
            rollout.obs[step], rollout.actions[step] = tensor, action
            obs, reward, terminated, truncated, _ = envs.step(action.numpy())
            with stopwatch.section():
                scaled = scaler(reward + obs[:, 0])
            rollout.rewards[step] = torch.from_numpy(scaled)
            rollout.dones[step] = torch.from_numpy(terminated | truncated)
        with torch.no_grad():
            rollout.last_value = agent.value(torch.from_numpy(obs))
        update(agent, optimizer, rollout.batch(gae(rollout)))
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()
