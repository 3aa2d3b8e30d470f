"""Pairs of arms: both processes are alive, and one runs at a time, iteration by iteration, in random order.

Whatever else the machine does affects both alike. A process keeps a speed of its own for its whole life, which depends
on how its memory happens to be laid out. So the statistics count pairs, and every pair is started anew.
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

from rlprof.analysis.comparison import MeasuredPair
from rlprof.analysis.differences import changes
from rlprof.analysis.figures import many
from rlprof.analysis.trimmed import kept
from rlprof.analysis.work import ITERATION, UPDATE, Measured
from rlprof.errors import RlprofError
from rlprof.experiment.arm import PATIENCE_SECONDS, Arm, ArmError, Iterations, begin_all
from rlprof.experiment.protocol import MOST_ITERATIONS
from rlprof.ledger.catalogue import TURN_WAIT
from rlprof.session.folder import DATABASE
from rlprof.session.reader import Session

WARM_UP = 3
"""Iterations of each arm at the start that do not count."""
SHORTEST_NS = 5_000_000
"""If iterations are shorter, several run between two waits, because the first moments after a wait are not typical."""


@dataclass(frozen=True, slots=True)
class Block:
    """Iterations of each arm, one arm directly after the other."""

    a: Iterations
    b: Iterations


@dataclass(frozen=True, slots=True)
class Pair:
    blocks: tuple[Block, ...]
    changes: tuple[str, ...]
    """Differences between the arms other than their times."""
    interrupted: bool = False
    """Ctrl-C came before all blocks were measured."""


def run_pair(
    commands: tuple[str, str],
    blocks: int,
    chance: random.Random,
    most: int = 0,
    patience: float = PATIENCE_SECONDS,
    warm_up: int = WARM_UP,
    on_progress: Callable[[int], None] = lambda _: None,
    per: str | None = None,
) -> Pair:
    """Start both arms and alternate between them until `blocks` iterations are measured. `on_progress` gets how many.

    If `most` allows more blocks, measuring goes on for as long as starting and warming up took: that is a better use of
    the time than another start. After Ctrl-C the pair has what was measured so far."""
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
                    on_progress(number - warm_up)
                started = time.monotonic()
                number, length = 0, 1
                while number < blocks or (len(measured) < most and time.monotonic() - started < started - began):
                    length = min(length, blocks - number) if number < blocks else length
                    block = _block(arms, chance, length, per)
                    if block is None:
                        if number < blocks:
                            raise _ended_early(arms, number + warm_up + 1, warm_up, blocks)
                        break
                    measured.append(block)
                    number += length
                    length = _length(block)
                    on_progress(number)
                for arm in arms:
                    arm.request_end()  # both at once, because each takes a while
        except KeyboardInterrupt:
            if not measured:
                raise
            interrupted = True
        return Pair(tuple(measured), _changes(Path(folder)), interrupted)


def _start(
    stack: ExitStack, folder: Path, commands: tuple[str, str], chance: random.Random, patience: float
) -> list[Arm]:
    """A and B, each at the start of its first iteration."""
    # The first process that is started keeps some of that for its whole life, so the order is random too.
    order = chance.sample(list(zip("AB", commands)), 2)
    arms = [stack.enter_context(Arm(name, command, folder, patience=patience)) for name, command in order]
    begin_all(arms)
    return sorted(arms, key=lambda arm: arm.name)


def _warm_up(arms: Sequence[Arm]) -> bool:
    """Run one iteration of both at the same time, because its time does not count. False if an arm has ended."""
    for arm in arms:
        arm.go()
    return None not in [arm.receive() for arm in arms]


def _length(block: Block) -> int:
    shorter = min(one.wall_ns / one.iterations for one in (block.a, block.b))
    return max(1, min(MOST_ITERATIONS, math.ceil(SHORTEST_NS / max(1, shorter))))


def _block(arms: Sequence[Arm], chance: random.Random, iterations: int, per: str | None) -> Block | None:
    """None if one of them has ended instead."""
    measured = {arm.name: arm.run(iterations) for arm in chance.sample(arms, 2)}
    a, b = measured["A"], measured["B"]
    if a is None or b is None:
        return None
    if bool(a.steps) != bool(b.steps) and per != ITERATION:
        one, other = arms if a.steps else arms[::-1]
        raise ArmError(
            f"{one} counts environment steps, {other} counts none: their work cannot be compared. Compare per training"
            " iteration with --per iteration"
        )
    return Block(a, b)


def _ended_early(arms: Sequence[Arm], iterations: int, warm_up: int, blocks: int) -> ArmError:
    arm = next(arm for arm in arms if arm.ended)
    # The last iteration cannot be measured: its end is where another one begins.
    possible = iterations - warm_up - 1
    fewer = f", or measure fewer with --iterations {possible}" if possible > 0 else ""
    return ArmError(
        f"{arm} ended after {many(iterations, 'iteration')}, but a pair needs {warm_up + blocks + 1}."
        f" Let it train longer{fewer}{arm.last_output()}"
    )


def _changes(folder: Path) -> tuple[str, ...]:
    """Found by the sessions of the arms. Command lines are left out, because they name the arms already."""
    infos = []
    for name in "AB":
        for database in (folder / name).glob(f"*/{DATABASE}"):
            with suppress(RlprofError), Session(database) as session:
                infos.append(replace(session.info, command=()))
    return changes(*infos) if len(infos) == 2 else ()


def measured(pair: Pair, component_of: Callable[[str], str], per: str | None = None) -> MeasuredPair:
    """Means of both arms, with the ledger by component. Typical ratios are per step, or per iteration if chosen."""
    a, b = (_measured(arm, component_of) for arm in zip(*((block.a, block.b) for block in pair.blocks)))
    return MeasuredPair(a, b, _drift(pair), _typical(pair.blocks, component_of, per))


def _typical(blocks: Sequence[Block], component_of: Callable[[str], str], per: str | None) -> dict[str, float]:
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    for block in blocks:
        a, b = (_by_component(one, component_of) for one in (block.a, block.b))
        done = [(per != ITERATION and one.steps) or one.iterations for one in (block.a, block.b)]
        work = math.log(done[1] / done[0])
        for name in a.keys() & b.keys():
            if a[name] > 0 and b[name] > 0:
                ratios[name].append(math.log(a[name] / b[name]) + work)
    everywhere = {name: found for name, found in ratios.items() if len(found) == len(blocks)}
    return {name: fmean(found[place] for place in kept(found)) for name, found in everywhere.items()}


def _by_component(measured: Iterations, component_of: Callable[[str], str]) -> dict[str, float]:
    """Time that an arm waits for the controller belongs to no component."""
    found: defaultdict[str, float] = defaultdict(float)
    for path, ns in measured.ledger.items():
        if path.rpartition("/")[2] != TURN_WAIT:
            found[component_of(path)] += ns
    return found


def _drift(pair: Pair) -> float:
    ratios = [math.log(block.a.wall_ns / block.b.wall_ns) for block in pair.blocks]
    if len(ratios) < 3:
        return 0.0
    return linear_regression(range(len(ratios)), ratios).slope * (len(ratios) - 1)


def _measured(parts: Sequence[Iterations], component_of: Callable[[str], str]) -> Measured:
    ledger: defaultdict[str, float] = defaultdict(float)
    iterations = sum(part.iterations for part in parts)
    updates = [n for part in parts for path, n in part.calls.items() if path.rpartition("/")[2] == UPDATE]
    for part in parts:
        for name, ns in _by_component(part, component_of).items():
            ledger[name] += ns / iterations
    return Measured(
        wall_ns=sum(part.wall_ns for part in parts) / iterations,
        cpu_ns=sum(part.cpu_ns for part in parts) / iterations,
        steps=sum(part.steps for part in parts) / iterations,
        episodes=sum(part.episodes for part in parts) / iterations,
        updates=sum(updates) / iterations,
        ledger={name: ns for name, ns in ledger.items() if ns > 0},
        iterations=iterations,
    )
