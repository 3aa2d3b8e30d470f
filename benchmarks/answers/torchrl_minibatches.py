"""PPO of TorchRL on CartPole."""

from __future__ import annotations

import stopwatch
import torch
from torchrl_parts import FRAMES, Learner


def main() -> None:
    options = stopwatch.arguments(60, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    size = 128 if options.fix else 16
    learner = Learner(options.iterations, size)
    stopwatch.start()
    for batch in learner.collector:
        with torch.no_grad():
            learner.advantage(batch)
        learner.buffer.extend(batch.reshape(-1))
        with stopwatch.section():
            for _ in range(3 * FRAMES // size):
                learner.step(learner.buffer.sample())
        stopwatch.iteration(FRAMES)
    stopwatch.write()
    learner.collector.shutdown()


if __name__ == "__main__":
    main()
