"""PPO with a larger network, which can be resumed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, gae, update

ENVS, STEPS = 8, 64


def main() -> None:
    options = stopwatch.arguments(75, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2, hidden=512, layers=3)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    folder = Path(tempfile.mkdtemp())
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for iteration in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), epochs=1)
        if not options.fix or iteration % 20 == 19:
            with stopwatch.section():
                for name in ("last.pt", f"{iteration % 5}.pt", "best.pt"):
                    state = {"agent": agent.state_dict(), "optimizer": optimizer.state_dict()}
                    torch.save(state, folder / name)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()
