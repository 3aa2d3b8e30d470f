"""Measure what one sample of the Python stack costs, and so what 20 per second cost.

A DQN, 30 calls deep, runs in short turns: with 200 samples per second, ten times as many as usual, and with none. The
turns alternate, so that disturbances of the machine affect both alike. The cost is the CPU time of the whole process,
in all its threads, with the time to take the samples out of the ledger.

- sample_us: how much more CPU time a turn with samples takes, per sample. Median of all pairs of turns.
- share_percent: that for 20 samples per second, as a part of one second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any

from _common import Bar, Options, conclude, describe_machine, figure_table, progress
from own_cost import Dqn, recorded

from rlprof.ledger.profiler import Profiler
from rlprof.ledger.stacks import DRIVER_PERIOD, StackTotals

BARS = (Bar("share_percent", "<=", 0.2, " %"),)
PERIOD = DRIVER_PERIOD // 10
"""Time between two samples in ns."""
DEPTH = 30
"""Calls around the training: frameworks are about as deep."""
STEPS = 500
"""Per turn: a tenth of a second or two."""


def deep(calls: int, function: Callable[[], object]) -> None:
    if calls:
        deep(calls - 1, function)
    else:
        function()


class Drain:
    """Counts the samples that the totals take out of the ledger. A late one counts for as many as it replaces."""

    def __init__(self, profiler: Profiler) -> None:
        self.samples = 0.0
        self._ledger = profiler.ledger
        self._totals = StackTotals()

    def drain_stacks(self) -> Any:
        drained = self._ledger.drain_stacks()
        self.samples += sum(record[2] for record in drained[0] if len(record) != 3) / PERIOD  # the others are moves
        return drained

    def take(self) -> None:
        self._totals.take(self)


def turn(dqn: Dqn, drain: Drain) -> tuple[int, float]:
    """CPU time of the process in ns, and the samples taken."""
    begun, before = time.process_time_ns(), drain.samples
    deep(DEPTH, lambda: dqn.run(STEPS))
    drain.take()
    return time.process_time_ns() - begun, drain.samples - before


def measure(pairs: int) -> dict[str, Any]:
    dqn, costs, sampled = Dqn(), [], 0.0
    with recorded() as profiler:
        drain = Drain(profiler)
        dqn.run(1_000)
        for number in range(pairs):
            profiler.sample_stacks(PERIOD)
            on, samples = turn(dqn, drain)
            profiler.sample_stacks(0)
            drain.take()
            off, none = turn(dqn, drain)
            assert none == 0, "samples were taken while they are off"
            sampled += samples
            costs.append((on - off) / max(1.0, samples) / 1e3)
            if number % 50 == 49:
                progress(f"{number + 1} of {pairs} pairs: {median(costs):.2f} us per sample")
        profiler.sample_stacks(0)
    low, middle, high = quantiles(costs, n=4)
    error = 1.25 * 0.7413 * (high - low) / len(costs) ** 0.5  # standard error of a median
    per_second = 1e9 / DRIVER_PERIOD
    return {
        "samples": round(sampled),
        "sample_us": middle,
        "sample_us_error": error,
        "share_percent": middle * per_second / 1e4,
        "share_percent_error": error * per_second / 1e4,
    }


def main() -> None:
    parser = Options(__doc__)
    parser.number("--pairs", 400, "pairs of turns, one with samples and one without")
    options = parser.parse_args()
    found = {"machine": describe_machine(), **measure(options.pairs)}
    conclude(found, BARS, options, figure_table("Cost of a sample", found))


if __name__ == "__main__":
    main()
