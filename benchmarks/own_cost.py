"""Measure whether the cost that rlprof reports for itself is right, and whether accounts match what the caller
measures.

The training is a DQN with a cheap environment (CartPole) and an update every fourth step: rlprof has much to record,
and the training does little work. Recording is switched on and off every few steps, hundreds of times, so that
disturbances of the machine affect both alike.

- claimed: the cost per step that rlprof reports.
- overhead: how much more CPU time a step takes with recording on than with recording off. Median of all alternations.
- env_step: the median call in the account, and the median of the program's own timestamps around `env.step()` with
  recording off and on. Medians, because in some calls another program has the core.

The same is then measured while busy loops, one more than there are cores, compete for the cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from _common import Bar, Options, conclude, describe_machine, empty_table, progress
from torch import nn

from rlprof import Profiler
from rlprof.probes import gymnasium as gymnasium_probe
from rlprof.probes import torch as torch_probe
from rlprof.probes.registry import Attached

BARS = (
    Bar("idle_overhead_off_by", "<=", 1.0, " uncertainties"),
    Bar("loaded_overhead_off_by", "<=", 1.0, " uncertainties"),
    Bar("idle_env_step_off_percent", "<=", 2.0, " %"),
    Bar("loaded_env_step_off_percent", "<=", 3.0, " %"),
)

TURN = 40
"""Steps between two switches of recording."""

clock = time.perf_counter_ns


class Dqn:
    """The training, with timestamps of its own around the steps of the environment."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.env = gym.make("CartPole-v1")
        self.network = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
        self.optimizer = torch.optim.Adam(self.network.parameters())
        self.obs, _ = self.env.reset(seed=1)
        self.seen = np.zeros((1_000, 4), dtype=np.float32)

    def run(self, steps: int) -> tuple[int, list[int]]:
        """The CPU time of all steps, and the duration of each step of the environment. ns."""
        begun, in_env = time.thread_time_ns(), []
        for step in range(steps):
            action = int(self.network(torch.from_numpy(self.obs[None])).argmax())
            self.seen[step % 1_000] = self.obs
            began = clock()
            self.obs, _, terminated, truncated, _ = self.env.step(action)
            in_env.append(clock() - began)
            if terminated or truncated:
                self.obs, _ = self.env.reset()
            if step % 4 == 3:
                self.learn()
        return time.thread_time_ns() - begun, in_env

    def learn(self) -> None:
        values = self.network(torch.from_numpy(self.seen[np.random.randint(0, 1_000, 32)]))
        loss = (values**2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


@contextmanager
def recorded() -> Iterator[Profiler]:
    profiler = Profiler()
    attached = Attached(profiler)
    attached.attach((gymnasium_probe.PROBE, torch_probe.PROBE))
    profiler.enable()
    try:
        yield profiler
    finally:
        attached.undo()
        profiler.disable()


def mark_cost() -> float:
    """The median time between two readings of the clock with nothing in between, in ns."""
    costs = []
    for _ in range(2_000):
        began = clock()
        costs.append(clock() - began)
    return median(costs)


def block(dqn: Dqn, turns: int) -> dict[str, float]:
    """Figures per step, in us."""
    pair = mark_cost()
    off, on = [], []
    with recorded() as profiler:
        dqn.run(400)  # operations cost more when rlprof meets them for the first time
        profiler.reset()
        for _ in range(turns):
            on.append(dqn.run(TURN))
            profiler.ledger.stop()  # not disable(), which also calibrates
            off.append(dqn.run(TURN))
            profiler.ledger.start()
        snapshot = profiler.snapshot()
    snapshot.check()
    steps = turns * TURN
    caller, plain = (median(ns for _, in_env in found for ns in in_env) - pair for found in (on, off))
    account = snapshot.account("env_step").quantile_ns(0.5) or 0.0
    return {
        "step_us": sum(all_of_it for all_of_it, _ in off) / steps / 1e3,
        "claimed_us": snapshot.rlprof_ns / steps / 1e3,
        "uncertainty_us": snapshot.rlprof_uncertainty_ns / steps / 1e3,
        "overhead_us": TURN**-1 * median(mine[0] - its[0] for mine, its in zip(on, off)) / 1e3,
        "env_step_off_us": plain / 1e3,
        "env_step_on_us": caller / 1e3,
        "env_step_account_us": account / 1e3,
    }


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure(name: str, options: Any) -> dict[str, Any]:
    dqn = Dqn()
    dqn.run(1_000)
    blocks = []
    for number in range(options.blocks):
        blocks.append(block(dqn, options.turns))
        progress(f"{name}, block {number + 1} of {options.blocks}: {blocks[-1]}")
    middle = {key: median(found[key] for found in blocks) for key in blocks[0]}
    return {
        **middle,
        "claimed_of_overhead": median(found["claimed_us"] / found["overhead_us"] for found in blocks),
        "env_step_account_of_off": median(found["env_step_account_us"] / found["env_step_off_us"] for found in blocks),
        "env_step_account_of_on": median(found["env_step_account_us"] / found["env_step_on_us"] for found in blocks),
        "blocks": blocks,
    }


def main() -> None:
    parser = Options(__doc__)
    parser.number("--blocks", 9, "number of blocks, each with its own profiler")
    parser.number("--turns", 50, "alternations per block, each with 40 recorded and 40 unrecorded steps")
    options = parser.parse_args()
    found = {"idle": measure("idle", options)}
    with busy_loops((os.cpu_count() or 1) + 1):
        found["loaded"] = measure("loaded", options)
    figures = {}
    for name, figure in found.items():
        figures[f"{name}_overhead_off_by"] = (
            abs(figure["overhead_us"] - figure["claimed_us"]) / figure["uncertainty_us"]
        )
        figures[f"{name}_env_step_off_percent"] = 100 * abs(figure["env_step_account_of_off"] - 1)
    table = empty_table("Figures per step, medians of the blocks", "", *found)
    for key in found["idle"]:
        if key != "blocks":
            table.add_row(key, *(f"{figure[key]:.3f}" for figure in found.values()))
    conclude({"machine": describe_machine(), **found, **figures}, BARS, options, table)


if __name__ == "__main__":
    main()
