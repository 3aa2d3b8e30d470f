"""A training in a child process, while the first process polls with sleeps or, with --queue, on a queue."""

from __future__ import annotations

import multiprocessing
import sys
import time
from contextlib import suppress
from queue import Empty
from typing import Any

import own
import torch
from parts import Env, descend, network, sample

ITERATIONS, STEPS = 40, 64


def train(results: Any) -> None:
    env, net = Env(), network(4, 2)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    observation, _ = env.reset(seed=1)
    own.resume()
    for _ in range(ITERATIONS):
        logs = []
        for _ in range(STEPS):
            observation, _, terminated, truncated, _ = env.step(sample(net, observation, logs))
            own.steps += 1
            if terminated or truncated:
                observation, _ = env.reset()
        descend(optimizer, -torch.cat(logs).mean())
        own.iterations += 1
        results.put(own.iterations)
    own.write()


def main() -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    learner = context.Process(target=train, args=(results,))
    learner.start()
    while learner.is_alive():
        if "--queue" in sys.argv:
            with suppress(Empty):
                results.get(timeout=0.05)
        else:
            time.sleep(0.05)
            while not results.empty():
                results.get()
    learner.join()


if __name__ == "__main__":
    main()
