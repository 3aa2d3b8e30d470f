"""Pairs of arms that take turns: both processes live, one runs at a time, iteration by iteration, in random order.

What the machine does meanwhile meets both alike. A process keeps its own speed for its whole life, by how its memory
happens to lie, so the pair is the unit that statistics count, and every pair is started anew.
"""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rlprof.analysis.comparison import Measured
from rlprof.experiment.arm import Arm, ArmError, Turn
from rlprof.ledger.catalogue import TURN_WAIT

WARM_UP = 3
"""Iterations of each arm that do not count."""


@dataclass(frozen=True, slots=True)
class Block:
    """One iteration of each arm, one directly after the other."""

    a: Turn
    b: Turn


@dataclass(frozen=True, slots=True)
class Pair:
    blocks: tuple[Block, ...]


def run_pair(
    commands: tuple[str, str],
    blocks: int,
    chance: random.Random,
    warm_up: int = WARM_UP,
    tell: Callable[[int], None] = lambda _: None,
) -> Pair:
    """Start both arms and let them take turns; `tell` hears of each block. An arm that ends early ends the pair."""
    with tempfile.TemporaryDirectory(prefix="rlprof-compare-") as folder, ExitStack() as stack:
        arms = [stack.enter_context(Arm(name, command, Path(folder))) for name, command in zip("AB", commands)]
        for arm in arms:
            arm.begin()
        measured = []
        for number in range(-warm_up, blocks):
            turns = {arm.name: arm.take_turn() for arm in chance.sample(arms, 2)}
            a, b = turns["A"], turns["B"]
            if a is None or b is None:
                break
            if number >= 0:
                measured.append(Block(a, b))
            tell(number + 1)
        if not measured:
            early = next(arm for arm in arms if arm.ended)
            raise ArmError(f"{early} has ended in its first {warm_up + 1} iterations, which are to warm up")
        return Pair(tuple(measured))


def measured(pair: Pair, component_of: Callable[[str], str]) -> tuple[Measured, Measured]:
    """The means of both arms, with the ledger by component. Waiting for the other arm belongs to none."""
    a, b = ([getattr(block, arm) for block in pair.blocks] for arm in "ab")
    return _measured(a, component_of), _measured(b, component_of)


def _measured(turns: Sequence[Turn], component_of: Callable[[str], str]) -> Measured:
    ledger: defaultdict[str, float] = defaultdict(float)
    for turn in turns:
        for path, ns in turn.ledger.items():
            if path.rpartition("/")[2] != TURN_WAIT:
                ledger[component_of(path)] += ns / len(turns)
    return Measured(
        wall_ns=fmean(turn.wall_ns for turn in turns),
        cpu_ns=fmean(turn.cpu_ns for turn in turns),
        steps=fmean(turn.steps for turn in turns),
        ledger={name: ns for name, ns in ledger.items() if ns > 0},
    )
