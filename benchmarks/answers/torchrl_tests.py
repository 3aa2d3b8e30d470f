"""PPO of TorchRL on CartPole, tested as it learns."""

from __future__ import annotations

import stopwatch
import torch
from torchrl.envs.utils import ExplorationType, set_exploration_type
from torchrl_parts import FRAMES, Learner, make_env

SIZE = 64


def main() -> None:
    options = stopwatch.arguments(32, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    learner = Learner(options.iterations, SIZE)
    test = make_env()
    every = 10 if options.fix else 1
    scores = []
    stopwatch.start()
    for number, batch in enumerate(learner.collector):
        with torch.no_grad():
            learner.advantage(batch)
        learner.buffer.extend(batch.reshape(-1))
        for _ in range(3 * FRAMES // SIZE):
            learner.step(learner.buffer.sample())
        if number % every == every - 1:
            greedy = set_exploration_type(ExplorationType.DETERMINISTIC)
            with stopwatch.section(), stopwatch.outside(), torch.no_grad(), greedy:
                for _ in range(8):
                    scores.append(float(test.rollout(100, learner.actor)["next", "reward"].sum()))
        stopwatch.iteration(FRAMES)
    stopwatch.write()
    learner.collector.shutdown()


if __name__ == "__main__":
    main()
