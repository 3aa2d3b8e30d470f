"""PPO of TorchRL on CartPole."""

from __future__ import annotations

import stopwatch
import torch
from torchrl_parts import FRAMES, Learner

SIZE = 128


def main() -> None:
    options = stopwatch.arguments(100, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    learner = Learner(options.iterations, SIZE)
    stopwatch.start()
    for batch in learner.collector:
        with torch.no_grad():
            learner.advantage(batch)
        learner.buffer.extend(batch.reshape(-1))
        for _ in range(3 * FRAMES // SIZE):
            learner.step(learner.buffer.sample())
        stopwatch.iteration(FRAMES)
    stopwatch.write()
    learner.collector.shutdown()


if __name__ == "__main__":
    main()
