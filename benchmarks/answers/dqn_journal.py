"""DQN on CartPole. Each step is logged, so that nothing is lost in a crash."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import ReplayBuffer, act, descend, dqn_loss, q_network


def main() -> None:
    options = stopwatch.arguments(70, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = gym.make("CartPole-v1")
    q, target = q_network(4, 2), q_network(4, 2)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    buffer = ReplayBuffer(10_000, 4)
    journal = (Path(tempfile.mkdtemp()) / "journal.jsonl").open("w")
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, obs, 2)
            following, reward, terminated, truncated, _ = env.step(action)
            buffer.add(obs, action, reward, following, terminated)
            with stopwatch.section():
                journal.write(json.dumps({"obs": obs.tolist(), "action": action, "reward": float(reward)}) + "\n")
                if not options.fix:
                    journal.flush()
                    os.fsync(journal.fileno())
            obs = env.reset()[0] if terminated or truncated else following
            descend(optimizer, dqn_loss(q, target, buffer.sample(64)))
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()
