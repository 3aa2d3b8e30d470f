"""DQN on CartPole that keeps every transition as objects and frees memory after each episode."""

from __future__ import annotations

import gc
import random
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import act, descend, dqn_loss, q_network


@dataclass
class Transition:
    obs: list[float]
    action: int
    reward: float
    following: list[float]
    done: float
    info: dict[str, Any]


def batch_of(transitions: list[Transition]) -> list[Any]:
    obs = torch.from_numpy(np.array([t.obs for t in transitions], np.float32))
    actions = torch.tensor([t.action for t in transitions])
    rewards = torch.tensor([t.reward for t in transitions])
    following = torch.from_numpy(np.array([t.following for t in transitions], np.float32))
    return [obs, actions, rewards, following, torch.tensor([t.done for t in transitions])]


def main() -> None:
    options = stopwatch.arguments(16, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = gym.make("CartPole-v1")
    q, target = q_network(4, 2), q_network(4, 2)
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    demonstrations = [
        Transition([0.0] * 4, i % 2, 1.0, [0.0] * 4, 0.0, {"time": float(i), "source": [i]}) for i in range(60_000)
    ]
    memory = demonstrations
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, obs, 2)
            following, reward, terminated, truncated, info = env.step(action)
            memory.append(Transition(obs.tolist(), action, float(reward), following.tolist(), float(terminated), info))
            obs = following
            if terminated or truncated:
                obs, _ = env.reset()
                if not options.fix:
                    with stopwatch.section():
                        gc.collect()
            descend(optimizer, dqn_loss(q, target, batch_of(random.sample(memory, 64))))
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()
