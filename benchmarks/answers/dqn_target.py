"""DQN on CartPole with a target network that follows slowly."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import ReplayBuffer, act, descend, dqn_loss, polyak, q_network


def blended(q: Any, target: Any, tau: float = 0.005) -> Any:
    new = copy.deepcopy(q)
    for parameter, old in zip(new.parameters(), target.parameters()):
        parameter.data.mul_(tau).add_(old.data, alpha=1 - tau)
    return new


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
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, obs, 2)
            following, reward, terminated, truncated, _ = env.step(action)
            buffer.add(obs, action, reward, following, terminated)
            obs = env.reset()[0] if terminated or truncated else following
            descend(optimizer, dqn_loss(q, target, buffer.sample(64)))
            with stopwatch.section():
                if options.fix:
                    polyak(q, target)
                else:
                    target = blended(q, target)

        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()
