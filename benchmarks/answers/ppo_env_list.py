"""PPO on a list of CartPoles that are stepped together."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from ppo import Agent, Rollout, gae, update

ENVS, STEPS = 8, 64


def main() -> None:
    options = stopwatch.arguments(90, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = [gym.make("CartPole-v1") for _ in range(ENVS)]
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs = np.stack([env.reset(seed=options.seed + i)[0] for i, env in enumerate(envs)])
    stopwatch.start()
    for _ in range(options.iterations):
        rollout = Rollout.empty(STEPS, ENVS, 4)
        for step in range(STEPS):
            tensor = torch.from_numpy(obs)
            rollout.obs[step] = tensor
            with torch.no_grad(), stopwatch.section():
                if options.fix:
                    rollout.actions[step], rollout.logprobs[step], rollout.values[step] = agent.act(tensor)
                else:
                    for i in range(ENVS):
                        action, logprob, value = agent.act(tensor[i])
                        rollout.actions[step, i], rollout.logprobs[step, i] = action, logprob
                        rollout.values[step, i] = value
            for i, env in enumerate(envs):
                obs[i], reward, terminated, truncated, _ = env.step(int(rollout.actions[step, i]))
                rollout.rewards[step, i], rollout.dones[step, i] = float(reward), float(terminated or truncated)
                if terminated or truncated:
                    obs[i], _ = env.reset()
        with torch.no_grad():
            rollout.last_value = agent.value(torch.from_numpy(obs))
        update(agent, optimizer, rollout.batch(gae(rollout)), epochs=4)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()
