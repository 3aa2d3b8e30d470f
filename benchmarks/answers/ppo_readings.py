"""PPO for a robot with range sensors."""

from __future__ import annotations

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, Rollout, gae, update
from worlds import Lidar

ENVS, STEPS, BEAMS = 8, 64, 360


def main() -> None:
    options = stopwatch.arguments(195, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.vector.SyncVectorEnv([lambda: Lidar(BEAMS)] * ENVS)
    agent = Agent(BEAMS, 3)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        rollout = Rollout.empty(STEPS, ENVS, BEAMS)
        for step in range(STEPS):
            with stopwatch.section():
                if options.fix:
                    tensor = torch.as_tensor(obs, dtype=torch.float32)
                else:
                    tensor = torch.tensor([[float(x) for x in row] for row in obs], dtype=torch.float32)
            with torch.no_grad():
                action, rollout.logprobs[step], rollout.values[step] = agent.act(tensor)
            rollout.obs[step], rollout.actions[step] = tensor, action
            obs, reward, terminated, truncated, _ = envs.step(action.numpy())
            rollout.rewards[step] = torch.from_numpy(reward)
            rollout.dones[step] = torch.from_numpy(terminated | truncated)
        with torch.no_grad():
            rollout.last_value = agent.value(torch.from_numpy(obs))
        update(agent, optimizer, rollout.batch(gae(rollout)))
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()
