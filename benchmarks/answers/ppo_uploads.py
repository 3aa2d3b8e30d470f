"""PPO on CartPole. A thread sends the metrics of each iteration to a tracker."""

from __future__ import annotations

import threading
import time
from queue import Queue

import gymnasium as gym
import stopwatch
import torch
from ppo import Agent, collect, gae, update

ENVS, STEPS = 8, 64


def send(metrics: Queue[float]) -> None:
    while True:
        metrics.get()
        time.sleep(0.03)  # the tracker's answer
        metrics.task_done()


def main() -> None:
    options = stopwatch.arguments(70, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    agent = Agent(4, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    metrics: Queue[float] = Queue()
    threading.Thread(target=send, args=(metrics,), daemon=True).start()
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), size=128)
        metrics.put(float(rollout.rewards.mean()))
        if not options.fix:
            with stopwatch.section():
                while metrics.unfinished_tasks:
                    time.sleep(0.05)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()
