"""PPO for a robot with range sensors and a wide network."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, Rollout, gae, update
from worlds import Lidar

ENVS, STEPS, BEAMS = 8, 64, 64


def main() -> None:
    options = stopwatch.arguments(60, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    precision = torch.float32 if options.fix else torch.float64
    torch.set_default_dtype(precision)
    envs = gym.vector.SyncVectorEnv([lambda: Lidar(BEAMS)] * ENVS)
    agent = Agent(BEAMS, 3, hidden=384)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        rollout = Rollout.empty(STEPS, ENVS, BEAMS)
        with torch.no_grad():
            for step in range(STEPS):
                tensor = torch.from_numpy(obs).to(precision)
                action, rollout.logprobs[step], rollout.values[step] = agent.act(tensor)
                rollout.obs[step], rollout.actions[step] = tensor, action
                obs, reward, terminated, truncated, _ = envs.step(action.numpy())
                rollout.rewards[step] = torch.from_numpy(reward)
                rollout.dones[step] = torch.from_numpy(terminated | truncated)
            rollout.last_value = agent.value(torch.from_numpy(obs).to(precision))
        advantages = gae(rollout)
        with stopwatch.section():
            update(agent, optimizer, rollout.batch(advantages))
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()
