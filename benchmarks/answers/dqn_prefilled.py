"""DQN on CartPole. Random actions fill its memory first."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import ReplayBuffer, act, descend, dqn_loss, q_network


def main() -> None:
    options = stopwatch.arguments(105, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = gym.make("CartPole-v1")
    q, target = q_network(4, 2), q_network(4, 2)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    buffer = ReplayBuffer(10_000, 4)
    obs, _ = env.reset(seed=options.seed)
    for _ in range(0 if options.fix else 8_000):
        action = int(env.action_space.sample())
        following, reward, terminated, truncated, _ = env.step(action)
        buffer.add(obs, action, reward, following, terminated)
        obs = env.reset()[0] if terminated or truncated else following
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, obs, 2)
            following, reward, terminated, truncated, _ = env.step(action)
            buffer.add(obs, action, reward, following, terminated)
            obs = env.reset()[0] if terminated or truncated else following
            descend(optimizer, dqn_loss(q, target, buffer.sample(64)))
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()
