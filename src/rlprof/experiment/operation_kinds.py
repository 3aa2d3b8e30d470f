"""What operations are like, before they are slowed down alike: they compute or wait, with the GIL or without it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rlprof.experiment.arm import Arm, Turn
from rlprof.experiment.cpu_schedule import Scheduled, scheduled
from rlprof.experiment.slowdown_memory import Dose, Doses, Given

WARM_UP = 3
ITERATIONS = 5
SECONDS = 0.5
"""At least, both; of each of the two looks."""
ENOUGH_NS = 10_000_000
"""Of samples."""
BUSY = 0.85
BLOCKED = 0.1
"""Of an operation's time: off the CPU with nobody in the way, it waits for something."""


def look(arm: Arm, doses: Doses, names: Sequence[str], shares_gil: bool) -> dict[str, Dose | str]:
    """Of each operation a full dose, as long again as it takes; or why there can be none."""
    for _ in range(WARM_UP):
        arm.take_turn()
    before, ran = {name: doses.given(name) for name in names}, scheduled(arm.pid)
    turns = _turns(arm)
    ran = scheduled(arm.pid) - ran
    seen = {name: _since(before[name], doses.given(name)) for name in names}
    if shares_gil:  # apart: while somebody else keeps the GIL to see who goes on, all take longer
        doses.sampling = True
        _turns(arm)
        doses.sampling = False
    found: dict[str, Dose | str] = {}
    for name in names:
        if seen[name].calls:
            held = _held(seen[name], _since(before[name], doses.given(name))) if shares_gil else 0.0
            found[name] = Dose(1.0, held, _blocked(seen[name], turns, ran, shares_gil))
        elif seen[name].missed:
            found[name] = f"{name} runs in asyncio tasks, where it cannot be slowed down alone"
        elif turns:
            found[name] = f"{name} has no calls in these iterations that could be slowed down"
    return found


def _turns(arm: Arm) -> list[Turn]:
    turns: list[Turn] = []
    began = time.monotonic()
    while len(turns) < ITERATIONS or time.monotonic() - began < SECONDS:
        turn = arm.take_turn()
        if turn is None:
            break
        turns.append(turn)
    return turns


def _since(before: Given, after: Given) -> Given:
    return Given(*(getattr(after, name) - getattr(before, name) for name in Given.__slots__))


def _held(seen: Given, sampled: Given) -> float:
    """The part of its computing that it needs the GIL for."""
    rate = seen.cpu_ns / seen.wall_ns if seen.wall_ns else 0.0  # at which it computes when nobody keeps it
    if sampled.sampled_ns < ENOUGH_NS or not rate:
        return 0.0
    return max(0.0, 1 - sampled.progress_ns / sampled.sampled_ns / rate)


def _blocked(seen: Given, turns: Sequence[Turn], ran: Scheduled, shares_gil: bool) -> float:
    """The part of its time in which it waits for something that others are not to blame for."""
    if not seen.wall_ns:
        return 0.0
    # Ready to run, and without a core: that is what others did to it, and a dose must not do it again.
    without_core = ran.ready_ns * min(1.0, seen.cpu_ns / ran.cpu_ns) if ran.cpu_ns else 0.0
    blocked = 1 - (seen.cpu_ns + without_core) / seen.wall_ns
    gil_is_busy = shares_gil and sum(turn.cpu_ns for turn in turns) > BUSY * sum(turn.wall_ns for turn in turns)
    return blocked if blocked > BLOCKED and not gil_is_busy else 0.0
