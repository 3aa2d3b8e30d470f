"""PPO of TorchRL on CartPole that reports its losses."""

from __future__ import annotations

import stopwatch
import torch
from torchrl_parts import FRAMES, Learner

SIZE = 64


def main() -> None:
    options = stopwatch.arguments(90, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    learner = Learner(options.iterations, SIZE)
    stopwatch.start()
    for batch in learner.collector:
        with torch.no_grad():
            learner.advantage(batch)
        learner.buffer.extend(batch.reshape(-1))
        for _ in range(3 * FRAMES // SIZE):
            minibatch = learner.buffer.sample()
            losses = learner.step(minibatch)
            if not options.fix:
                with stopwatch.section():
                    print({key: value.item() for key, value in losses.items() if value.numel() == 1})
                    print(minibatch["advantage"].squeeze(), minibatch["observation"], minibatch["value_target"])
        if options.fix:
            with stopwatch.section():
                print(losses["loss_critic"].item())
        stopwatch.iteration(FRAMES)
    stopwatch.write()
    learner.collector.shutdown()


if __name__ == "__main__":
    main()
