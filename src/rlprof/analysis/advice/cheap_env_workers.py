"""Worker processes step environments that are so cheap that sending actions and observations takes longer."""

from __future__ import annotations

import re

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import loop_of
from rlprof.analysis.advice.lookup import CONSIDERABLE, ENOUGH_CALLS, fraction, number, outermost, ratio
from rlprof.analysis.code import Line
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many

IN_ONE_PROCESS = (0.3, 0.5, 1.5)
"""Time of stepping all environments in the training's own process, relative to the sum of their times in the workers:
least, typical, most. A worker is woken up for each step, with cold caches. Measured on 2 cores with 8 CartPoles and
stable-baselines3: a step took 21 us in a worker, and 9 us in a DummyVecEnv."""

WORKERS = re.compile(r"vec_env|\.vector\b|multiprocessing")
"""Modules of libraries that step environments in worker processes."""

FAR_BELOW = 0.5
"""Most that is left of the time of env_step, to be worth the change."""


def cheap_env_workers(facts: Facts) -> Finding | None:
    """Speaks if stepping all environments in one process would take less than half of what their workers take."""
    found = [one for one in facts.evidence.environments if one.kind == "workers" and one.envs > 1]
    steps = facts.operation("env_step")
    if not found or steps is None:
        return None
    envs = max(number(one.envs) for one in found)
    workers = [lane for lane in steps.lanes if not lane.on_driver and lane.calls >= ENOUGH_CALLS]
    resets = facts.operation("env_reset")  # after an episode the worker resets by itself, as part of the step
    working = [*workers, *(lane for lane in (resets.lanes if resets is not None else ()) if not lane.on_driver)]
    alone = ratio(sum(number(lane.busy_ns) for lane in working), sum(number(lane.calls) for lane in workers))
    stepping = outermost(facts.breakdown.rows, lambda row: row.category == "environment", ("system",))
    calls = max((number(lane.calls) for lane in steps.lanes if lane.on_driver), default=0.0)
    communicating = max(0.0, stepping.total_ns - _own_code(facts))
    together = ratio(communicating, calls)
    share = fraction(communicating, facts.breakdown.training_ns)
    least, typical, most = (fraction(times * envs * alone, together) for times in IN_ONE_PROCESS)
    lefts, part = (typical, least, most), fraction(communicating, stepping.total_ns)
    if (
        not alone
        or calls < ENOUGH_CALLS
        or share < CONSIDERABLE
        or max(typical, ratio(envs * alone, together)) > FAR_BELOW
    ):
        return None
    return Finding(
        rule="cheap_env_workers",
        cause=f"A step of {many(envs, 'environment')} is work for {duration(envs * alone)}, but takes "
        f"{duration(together)} in worker processes: {as_percent(share)} of the training time, mostly for sending and "
        "receiving.",
        place=_place(facts),
        operations=tuple(name for name in stepping.operations if name in ("env_step", "env_wait")) or ("env_step",),
        evidence=(
            f"{count(calls)} steps of all {count(envs)} environments took {duration(together)} each. In the workers, a "
            f"step of one environment took {duration(alone)}.",
        ),
        change="Step these environments in the training's own process: `SyncVectorEnv` instead of gymnasium's "
        "`AsyncVectorEnv`, `DummyVecEnv` instead of stable-baselines3's `SubprocVecEnv`. Workers pay off above about "
        "0.3 ms per step.",
        gain=gain_if(facts, dict.fromkeys(stepping.operations, Left(*(1 - part * (1 - x) for x in lefts)))),
        check=compare_with_change(facts),
    )


def _steps_workers(line: Line) -> bool:
    return any(WORKERS.search(name) for name in line.below)


def _own_code(facts: Facts) -> float:
    """Time of the user's own code in the steps, in the training's process: of wrappers around the vector."""
    lines = (line for name in ("env_step", "env_wait") for line in facts.code.within(name, on_driver=True))
    return sum(number(line.ns) for line in lines if not _steps_workers(line))


def _place(facts: Facts) -> Line | None:
    """The line that steps the vector."""
    lines = [line for name in ("env_wait", "env_step") for line in facts.code.within(name, on_driver=True)]
    return next(filter(_steps_workers, lines), None) or loop_of(facts, "env_wait", "env_step", outer=True)
