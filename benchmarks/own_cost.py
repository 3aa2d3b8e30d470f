"""Is rlprof's own cost what it says, and do the accounts say what the caller sees?

A DQN with a cheap environment (CartPole) and an update every fourth step: rlprof has much to do, and little work to
hide in. A few steps with recording on and a few with recording off take turns, hundreds of times, so that what the
machine does meets both alike.

- claimed: the cost that rlprof states, per step.
- overhead: the CPU time that a step takes more with recording on than with recording off; the median over the turns.
- env_step: the median call in the account, against the median that the program's own marks around `env.step()` enclose
  with recording off, and with recording on. Medians, for a call in which others have the core is no figure of rlprof's.

Then the same while as many busy loops as there are cores, and one more, want the cores.
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
from _common import Bar, argument_parser, bar_table, describe_machine, judge, progress, write_results
from rich.table import Table
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
"""Steps before recording is switched."""

clock = time.perf_counter_ns


class Dqn:
    """What is trained, and what the program's own marks enclose."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.env = gym.make("CartPole-v1")
        self.network = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
        self.optimizer = torch.optim.Adam(self.network.parameters())
        self.obs, _ = self.env.reset(seed=1)
        self.seen = np.zeros((1_000, 4), dtype=np.float32)

    def run(self, steps: int) -> tuple[int, list[int]]:
        """CPU time of all of it, and how long the environment's steps took, in ns."""
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
    """Of one pair of readings with nothing in between."""
    costs = []
    for _ in range(2_000):
        began = clock()
        costs.append(clock() - began)
    return median(costs)


def block(dqn: Dqn, turns: int) -> dict[str, float]:
    """Per step, in us."""
    pair = mark_cost()
    off, on = [], []
    with recorded() as profiler:
        dqn.run(400)  # what is seen for the first time costs more
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
    parser = argument_parser(__doc__)
    parser.add_argument("--blocks", type=int, default=9, help="blocks, each with a profiler of its own (default: 9)")
    parser.add_argument("--turns", type=int, default=50, help="turns of 40 steps of each kind per block (default: 50)")
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
    judged = judge(BARS, figures)
    table = Table(title="Per step, medians of the blocks", title_justify="left")
    for column in ("", *found):
        table.add_column(column, justify="right" if column else "left")
    for key in found["idle"]:
        if key != "blocks":
            table.add_row(key, *(f"{figure[key]:.3f}" for figure in found.values()))
    write_results({"machine": describe_machine(), **found, "bars": judged}, options, (table, bar_table(judged)))


if __name__ == "__main__":
    main()
