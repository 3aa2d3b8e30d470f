"""DQN for a robot with range sensors. The episodes are kept for a video."""

from __future__ import annotations

import numpy as np
import stopwatch
import torch
from off_policy import ReplayBuffer, act, descend, dqn_loss, q_network
from worlds import Lidar

BEAMS = 64


def main() -> None:
    options = stopwatch.arguments(200, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = Lidar(BEAMS)
    q, target = q_network(BEAMS, 3), q_network(BEAMS, 3)
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    buffer = ReplayBuffer(2_000, BEAMS)
    video: list[np.ndarray] = []
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for step in range(100):
            action = act(q, obs, 3)
            following, reward, terminated, truncated, _ = env.step(action)
            buffer.add(obs, action, reward, following, terminated)
            if not options.fix:
                video.append(np.tile(following, (64, 4)))
            obs = env.reset()[0] if terminated or truncated else following
            if step % 2:
                descend(optimizer, dqn_loss(q, target, buffer.sample(64)))
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()
