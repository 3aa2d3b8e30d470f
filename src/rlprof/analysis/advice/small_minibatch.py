"""Optimizer steps with so few rows that the overhead of torch's calls takes most of their time.

An update of two MLPs (policy and value, Adam, gradient clipping, one thread) by rows: with 2 x 64 units 2.9 ms for 1
row, 2.2 ms for 32, 3.0 ms for 256 and 6.7 ms for 1,024; with 2 x 256 units 3.2, 3.4, 10.0 and 25.9 ms; with 3 x 512
units 10.8, 13.0, 42 and 130 ms. A convolutional network takes 44 ms for 1 row, 102 ms for 32 and 152 ms for 64.
"""

from __future__ import annotations

import re

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.forward_one_by_one import MANY, forwards_per_step
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import loop_of
from rlprof.analysis.advice.lookup import ENOUGH_CALLS, fraction, number
from rlprof.analysis.advice.updates import trains_with_sb3, updates_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many

MOST_ROWS = 32
"""Batches of 64 rows and more are common, and chosen for how a training learns, even where overhead dominates."""

MOST_REPLAYED_ROWS = 16
"""With a replay buffer, 32 rows are the default of many algorithms, and more rows do not make fewer optimizer steps."""

REPLAYS = re.compile(r"replay|memory|\bsample\(", re.IGNORECASE)
"""Text of lines in the update that draw rows from a replay buffer."""

LARGE_SHARE = 0.20
"""Least share of updates. A larger batch changes how the training learns, so it must be worth it."""

ROW_NS = (0.05, 0.2, 0.6)
"""ns per parameter and row that an update computes: least, typical, most. The slopes of the times above: 0.37 with
2 x 64 units, 0.16 with 2 x 256, 0.11 with 3 x 512, 0.5 in the convolutional network."""

EACH_ROW_NS = (0, 2_000, 10_000)
"""ns per row however large the networks are: selecting rows of six tensors, distributions, the loss."""

OVERHEAD = 0.5
"""Least part of an optimizer step that does not depend on the rows, even if the rows cost the most."""

LARGER = 8
MOST_ADVISED = 256
"""Rows of the larger batch: 8 times as many, at most 256."""


def small_minibatch(facts: Facts) -> Finding | None:
    """Speaks if updates take a fifth of the training time with at most 32 rows per optimizer step, and if at least
    half of a step is overhead by what the parameters and rows can cost."""
    updates = updates_of(facts)
    batches = facts.evidence.batches.learning
    if not batches or updates.steps < ENOUGH_CALLS or updates.share < LARGE_SHARE:
        return None
    if forwards_per_step(facts) >= MANY:
        return None  # an optimizer step learns from the rows of many forward passes
    rows = int(number(max(batches, key=lambda batch: batch.count).size))
    elements = sum(number(item.elements) * number(item.number) for item in facts.evidence.optimizers)
    step = updates.ns_per_step
    if not 0 < rows <= (MOST_REPLAYED_ROWS if _replays(facts) else MOST_ROWS) or not elements or not step:
        return None
    if fraction(ROW_NS[2] * elements * rows, step) > 1 - OVERHEAD:
        return None
    larger = _advised(facts, rows)
    if larger < 2 * rows:
        return None
    costs = [ns * elements + each for ns, each in zip(ROW_NS, EACH_ROW_NS)]
    least, typical, most = (_left(step, cost, rows, larger) for cost in costs)
    largest = updates.inside[:3]
    steps_per_iteration = updates.steps / max(1.0, number(facts.progress.iterations))
    evidence = [
        f"{count(updates.steps)} optimizer steps, {count(round(steps_per_iteration, 1))} per iteration, most of them "
        f"with {many(rows, 'row')}. Each takes {duration(step)}, which is {duration(step / rows)} per row.",
        f"The networks have {count(elements)} parameters: computing with {many(rows, 'row')} takes about "
        f"{duration(costs[1] * rows)}. The rest is the overhead of each call, however large the batch is.",
        f"Updates take {as_percent(updates.share)} of the training time.",
    ]
    return Finding(
        rule="small_minibatch",
        cause=f"Each optimizer step learns from only {many(rows, 'row')}, so the overhead of torch's calls takes most "
        f"of its {duration(step)}: {as_percent(updates.share)} of the training time.",
        place=loop_of(facts, *largest),
        operations=largest,
        evidence=tuple(evidence),
        change=_change(facts, rows, larger),
        gain=gain_if(facts, dict.fromkeys(updates.found.operations, Left(typical, least, most))),
        check=compare_with_change(facts),
    )


def _replays(facts: Facts) -> bool:
    """True if the training learns from a replay buffer."""
    if facts.operation("replay_sample") is not None or any("Replay" in one.name for one in facts.evidence.buffers):
        return True
    lines = [*facts.code.inner_loops.get("update", ()), *facts.code.within("update"), *facts.code.within("advantage")]
    return any(REPLAYS.search(line.source) or REPLAYS.search(line.function) for line in lines)


def _advised(facts: Facts, rows: int) -> int:
    """A larger batch, but not larger than what is collected between updates, unless a replay buffer has more."""
    larger = min(LARGER * rows, MOST_ADVISED)
    collected = number(facts.progress.steps_per_iteration)
    return int(min(larger, collected)) if collected >= 4 * rows else larger


def _left(step: float, row: float, rows: int, larger: int) -> float:
    """Fraction of the updates' time that remains if each optimizer step learns from the larger batch."""
    overhead = max(0.0, step - row * rows)
    return min(1.0, (overhead + row * larger) / (overhead + row * rows) * rows / larger)


def _change(facts: Facts, rows: int, larger: int) -> str:
    fewer = f"{larger / rows:.3g}"
    if 0 < number(facts.progress.steps_per_iteration) <= rows and not _replays(facts):
        return (
            f"Each update learns from all that was collected. Collect {fewer} times as much between updates: more "
            "environments (`gymnasium.make_vec(name, num_envs=8)`, or `make_vec_env(name, n_envs=8)` in "
            "stable-baselines3), or longer rollouts (`n_steps`)."
        )
    option = f"`batch_size={larger}`" if trains_with_sb3(facts) else f"minibatches of {larger} rows"
    return (
        f"Use {option} instead of {rows}, with the same number of epochs: {fewer} times fewer optimizer steps. If "
        f"the training learns after each env step, learn every {fewer} steps instead. Check the learning rate, as "
        "larger batches usually allow a larger one."
    )
