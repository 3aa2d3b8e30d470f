"""SAC for a robot with range sensors. Transitions come as lists, as from a JSON file."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import stopwatch
import torch
from off_policy import Sac
from worlds import Lidar

BEAMS = 256


def main() -> None:
    options = stopwatch.arguments(75, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    env = Lidar(BEAMS)
    sac = Sac(BEAMS, 1, hidden=64)
    memory: list[tuple[Any, ...]] = []
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for step in range(100):
            action = sac.act(obs)
            following, reward, terminated, truncated, _ = env.step(round(1 + float(action[0])))
            if options.fix:
                memory.append((obs, action, np.float32(reward), following, np.float32(terminated)))
            else:
                memory.append((obs.tolist(), action.tolist(), reward, following.tolist(), float(terminated)))
            obs = env.reset()[0] if terminated or truncated else following
            if step % 4 == 3:
                columns = zip(*random.choices(memory, k=64))
                with stopwatch.section():
                    if options.fix:
                        batch = [torch.from_numpy(np.stack(column)) for column in columns]
                    else:
                        batch = [torch.tensor(column, dtype=torch.float32) for column in columns]
                sac.learn(batch)
                sac.track()
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()
