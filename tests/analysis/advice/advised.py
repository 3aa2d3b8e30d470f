"""Small trainings, recorded to a session, and what the rules see of them.

Most run on a clock that moves by planted times, and by the CPU time of what they compute: other programs on the machine
do not change what a rule sees.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from fakes import Actor, Fake
from sessions import Written, facts_of

from rlprof import Profiler, SpanCost
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.code import Code, Growth, Line
from rlprof.analysis.facts import Facts
from rlprof.api import record
from rlprof.ledger.catalogue import PHASES
from rlprof.session.records import Sample

_clock: Fake | None = None
"""The profiler of the training that `train` runs."""
_runs = count()


def spin(seconds: float) -> None:
    """Compute for this much CPU time. On a real clock it takes longer when the core is shared."""
    if _clock is not None:
        _clock.tick(round(1e9 * seconds))
        return
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def work(profiler: Profiler, operation: str, seconds: float, category: str | None = None) -> None:
    with profiler.profile(operation, category=category):
        spin(seconds)


def rest(seconds: float) -> None:
    """Let this much time pass without computing."""
    _clock.tick(round(1e9 * seconds), 0)


def compute(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function. A planted clock advances by the CPU time of this thread."""
    began = time.thread_time_ns()
    result = function(*arguments)
    if _clock is not None:
        _clock.tick(time.thread_time_ns() - began)
    return result


def train(
    folder: Path,
    program: Callable[[Profiler], None],
    cost: SpanCost | None = None,
    samples: Iterable[Sample] = (),
) -> Facts:
    """Record a program that spins, rests and computes to a session on a planted clock, and read it."""
    global _clock
    written = Written(folder / f"run-{next(_runs)}", cost=cost)
    written.samples.extend(samples)
    _clock = written.fake
    try:
        program(written.fake.profiler)
    finally:
        _clock = None
    return facts_of(written.end())


def train_really(folder: Path, program: Callable[[Profiler], None]) -> Facts:
    """Record a program to a session on the machine's clock and read it."""
    profiler = Profiler()
    with record("advised", dir=folder, profiler=profiler) as recording:
        program(profiler)
    return facts_of(recording.folder)


@contextmanager
def actors(count):
    """Threads that do one thing at a time, when requested."""
    with ExitStack() as stack:
        made = [Actor(f"env-{number}") for number in range(count)]
        for actor in made:
            stack.callback(actor.end)
        yield made


def enter_all(profiler, threads):
    """All threads step an environment."""
    spans = [profiler.profile("env_step") for _ in threads]
    for thread, span in zip(threads, spans):
        thread.enter(span)
    return spans


def given(finding: Finding | None, rule: str, share: float | None = None) -> Finding:
    """The finding of a rule, after checking what holds for every finding.

    share: fraction of the training time that the finding is about. At most, all of it is saved; only the
    interval may reach further, if the iterations differ.
    """
    assert finding is not None, f"{rule} is silent"
    assert finding.rule == rule
    assert finding.evidence
    assert any(character.isdigit() for character in finding.cause), finding.cause
    for sentence in (finding.cause, *finding.evidence, finding.change):
        assert sentence.endswith((".", "`")), sentence
    assert finding.check
    assert not PHASES & set(finding.operations)
    if finding.gain is not None:
        assert 1.0 <= finding.gain.low <= finding.gain.estimate <= finding.gain.high
    if share is not None:
        assert 1.0 < finding.gain.low < finding.gain.estimate < finding.gain.high
        assert finding.gain.estimate <= amdahl(share)
    return finding


def amdahl(share: float, left: float = 0.0) -> float:
    """How many times as fast a serial training is if of this share of its time only a part is left."""
    return 1 / (1 - share * (1 - left))


def at(where: str, source: str, share: float, function: str = "main", below: Sequence[str] = ()) -> Line:
    """A line of code: `train.py:12`, with its share of an operation's own time."""
    file, _, number = where.rpartition(":")
    return Line(file, int(number), function, source, 0.0, share, tuple(below), 0.0 if below else 1.0)


def with_lines(facts: Facts, lines: Mapping[str, Sequence[Line]], growth: Sequence[Growth] = ()) -> Facts:
    """The same facts with sampled lines, whose times follow from the own time of their operations."""
    own = {row.operation: row.ledger_ns for row in facts.breakdown.rows if row.category == UNATTRIBUTED}
    own |= {item.operation: item.ledger_ns for item in facts.operations}
    timed = {
        operation: tuple(replace(line, ns=line.share * own[operation]) for line in found)
        for operation, found in lines.items()
    }
    sampled = sum(own[operation] for operation in timed)
    return replace(facts, code=Code(sampled, timed, {}, tuple(growth), timed, timed))


def speaking(rule: Callable[[Facts], Finding | None], run: Callable[[], Facts], tries: int = 3) -> Facts:
    """Facts that make a rule find something. Several runs, because other programs may take the cores away from one."""
    for _ in range(tries):
        facts = run()
        if rule(facts) is not None:
            break
    return facts


def cured(
    folder: Path,
    rule: Callable[[Facts], Finding | None],
    before: Callable[[Profiler], None],
    after: Callable[[Profiler], None],
    runs: int = 5,
) -> tuple[float, float]:
    """The upper end of the gain that a rule gives, and the gain that was measured: medians of alternating runs."""
    bounds, gains = [], []
    for _ in range(runs):
        slow, fast = train(folder, before), train(folder, after)
        bounds.append(rule(slow).gain.high)
        gains.append(fast.progress.steps_per_second / slow.progress.steps_per_second)
    return median(bounds), median(gains)


def on_cores(facts: Facts, cores: int) -> Facts:
    """The same facts on a machine with this many cores: a test must not depend on where it runs."""
    return replace(facts, session=replace(facts.session, cores=cores))


def share(facts: Facts, *operations: str) -> float:
    """Share of the training time, from the accounts."""
    spent = sum(item.ledger_ns for item in facts.operations if item.operation in operations)
    return spent / facts.breakdown.training_ns
