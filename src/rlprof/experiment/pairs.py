"""Pairs of arms that take turns: both processes live, one runs at a time, iteration by iteration, in random order.

What the machine does meanwhile meets both alike. A process keeps its own speed for its whole life, by how its memory
happens to lie, so the pair is the unit that statistics count, and every pair is started anew.
"""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, linear_regression

from rlprof.analysis.comparison import UPDATE, Measured, MeasuredPair
from rlprof.analysis.differences import changes
from rlprof.analysis.trimmed import kept
from rlprof.errors import RlprofError
from rlprof.experiment.arm import MOST_ITERATIONS, PATIENCE_SECONDS, Arm, ArmError, Turn, begin_all
from rlprof.ledger.catalogue import TURN_WAIT
from rlprof.session.folder import DATABASE
from rlprof.session.reader import Session

WARM_UP = 3
"""Iterations of each arm that do not count."""
SHORTEST_NS = 5_000_000
"""Of a turn: shorter iterations take turns several at a time, as the first moments after a wait are like no others."""


@dataclass(frozen=True, slots=True)
class Block:
    """One turn of each arm, one directly after the other."""

    a: Turn
    b: Turn


@dataclass(frozen=True, slots=True)
class Pair:
    blocks: tuple[Block, ...]
    changes: tuple[str, ...]
    """What differs between the arms, apart from their times."""
    interrupted: bool = False
    """By Ctrl-C, before it had all its blocks."""


def run_pair(
    commands: tuple[str, str],
    blocks: int,
    chance: random.Random,
    warm_up: int = WARM_UP,
    most: int = 0,
    patience: float = PATIENCE_SECONDS,
    tell: Callable[[int], None] = lambda _: None,
) -> Pair:
    """Start both arms and let them take turns until they have done `blocks` iterations that count; `tell` hears how
    many. With more turns at `most`, they go on for as long as starting and warming up took, which is the better use of
    the time. Ctrl-C leaves what was measured by then."""
    measured: list[Block] = []
    interrupted = False
    with tempfile.TemporaryDirectory(prefix="rlprof-compare-") as folder:
        try:
            with ExitStack() as stack:
                began = time.monotonic()
                arms = _start(stack, Path(folder), commands, chance, patience)
                for number in range(1, warm_up + 1):
                    if not _warm_up(arms):
                        raise _ended_early(arms, number, warm_up, blocks)
                    tell(number - warm_up)
                started = time.monotonic()
                number, length = 0, 1
                while number < blocks or (len(measured) < most and time.monotonic() - started < started - began):
                    length = min(length, blocks - number) if number < blocks else length
                    block = _block(arms, chance, length)
                    if block is None:
                        if number < blocks:
                            raise _ended_early(arms, number + warm_up + 1, warm_up, blocks)
                        break
                    measured.append(block)
                    number += length
                    length = _length(block)
                    tell(number)
                for arm in arms:
                    arm.let_end()  # both at once: each takes its time
        except KeyboardInterrupt:
            if not measured:
                raise
            interrupted = True
        return Pair(tuple(measured), _changes(Path(folder)), interrupted)


def _start(
    stack: ExitStack, folder: Path, commands: tuple[str, str], chance: random.Random, patience: float
) -> list[Arm]:
    """A and B, each at the start of its first iteration."""
    # Who is started first keeps something of it for all its life; which one that is must be chance, too.
    order = chance.sample(list(zip("AB", commands)), 2)
    arms = [stack.enter_context(Arm(name, command, folder, patience=patience)) for name, command in order]
    begin_all(arms)
    return sorted(arms, key=lambda arm: arm.name)


def _warm_up(arms: Sequence[Arm]) -> bool:
    """An iteration of both at once, as its time does not count; whether there was one."""
    for arm in arms:
        arm.go_on()
    return None not in [arm.hear_turn() for arm in arms]


def _length(block: Block) -> int:
    """Iterations of the next turn."""
    shorter = min(turn.wall_ns / turn.iterations for turn in (block.a, block.b))
    return max(1, min(MOST_ITERATIONS, math.ceil(SHORTEST_NS / max(1, shorter))))


def _block(arms: Sequence[Arm], chance: random.Random, iterations: int) -> Block | None:
    """None where one of them has ended instead."""
    turns = {arm.name: arm.take_turn(iterations) for arm in chance.sample(arms, 2)}
    a, b = turns["A"], turns["B"]
    if a is None or b is None:
        return None
    if bool(a.steps) != bool(b.steps):
        one, other = arms if a.steps else arms[::-1]
        raise ArmError(f"{one} counts environment steps, {other} none: their work cannot be compared")
    return Block(a, b)


def _ended_early(arms: Sequence[Arm], iterations: int, warm_up: int, blocks: int) -> ArmError:
    arm = next(arm for arm in arms if arm.ended)
    # The last one has no end that could be measured: another iteration would have to begin.
    possible = iterations - warm_up - 1
    fewer = f", or ask for fewer: --iterations {possible}" if possible > 0 else ""
    return ArmError(
        f"{arm} has ended after {iterations} of {warm_up + blocks + 1} iterations that a pair needs;"
        f" let it train longer{fewer}{arm.last_words()}"
    )


def _changes(folder: Path) -> tuple[str, ...]:
    """By the sessions that the arms have left; the command lines are the arms' names already."""
    infos = []
    for name in "AB":
        for database in (folder / name).glob(f"*/{DATABASE}"):
            with suppress(RlprofError), Session(database) as session:
                infos.append(replace(session.info, command=()))
    return changes(*infos) if len(infos) == 2 else ()


def measured(pair: Pair, component_of: Callable[[str], str]) -> MeasuredPair:
    """The means of both arms, with the ledger by component."""
    a, b = [block.a for block in pair.blocks], [block.b for block in pair.blocks]
    return MeasuredPair(
        _measured(a, component_of), _measured(b, component_of), _drift(pair), _typical(pair.blocks, component_of)
    )


def _typical(blocks: Sequence[Block], component_of: Callable[[str], str]) -> dict[str, float]:
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    for block in blocks:
        a, b = (_by_component(turn, component_of) for turn in (block.a, block.b))
        work = math.log((block.b.steps or block.b.iterations) / (block.a.steps or block.a.iterations))
        for name in a.keys() & b.keys():
            if a[name] > 0 and b[name] > 0:
                ratios[name].append(math.log(a[name] / b[name]) + work)
    return {
        name: fmean(found[place] for place in kept(found))
        for name, found in ratios.items()
        if len(found) == len(blocks)
    }


def _by_component(turn: Turn, component_of: Callable[[str], str]) -> dict[str, float]:
    """Waiting for the other arm belongs to none."""
    found: defaultdict[str, float] = defaultdict(float)
    for path, ns in turn.ledger.items():
        if path.rpartition("/")[2] != TURN_WAIT:
            found[component_of(path)] += ns
    return found


def _drift(pair: Pair) -> float:
    ratios = [math.log(block.a.wall_ns / block.b.wall_ns) for block in pair.blocks]
    if len(ratios) < 3:
        return 0.0
    return linear_regression(range(len(ratios)), ratios).slope * (len(ratios) - 1)


def _calls_of(turn: Turn, operation: str) -> int:
    return sum(calls for path, calls in turn.calls.items() if path.rpartition("/")[2] == operation)


def _measured(turns: Sequence[Turn], component_of: Callable[[str], str]) -> Measured:
    ledger: defaultdict[str, float] = defaultdict(float)
    iterations = sum(turn.iterations for turn in turns)
    for turn in turns:
        for name, ns in _by_component(turn, component_of).items():
            ledger[name] += ns / iterations
    return Measured(
        wall_ns=sum(turn.wall_ns for turn in turns) / iterations,
        cpu_ns=sum(turn.cpu_ns for turn in turns) / iterations,
        steps=sum(turn.steps for turn in turns) / iterations,
        episodes=sum(turn.episodes for turn in turns) / iterations,
        updates=sum(_calls_of(turn, UPDATE) for turn in turns) / iterations,
        ledger={name: ns for name, ns in ledger.items() if ns > 0},
        iterations=iterations,
    )
