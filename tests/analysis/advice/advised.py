"""Small trainings, recorded to a session, and what the rules see of them.

Most run on a clock that moves by planted times, and by the CPU time of what they compute: other programs on the machine
do not change what a rule sees.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from fakes import Fake
from sessions import Written, facts_of

from rlprof import Profiler, SpanCost
from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.facts import Facts
from rlprof.api import record
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


def given(advice: Advice | None, rule: str) -> Advice:
    """The advice of a rule, after checking what holds for every advice."""
    assert advice is not None, f"{rule} is silent"
    assert advice.rule == rule
    assert advice.evidence
    for sentence in (advice.title, *advice.evidence, advice.action, advice.check):
        assert sentence.endswith("."), sentence
    if advice.gain is not None:
        assert 1.0 <= advice.gain[0] <= advice.gain[1]
    return advice


def speaking(rule: Callable[[Facts], Advice | None], run: Callable[[], Facts], tries: int = 3) -> Facts:
    """Facts that make a rule give advice. Several runs, because other programs may take the cores away from one."""
    for _ in range(tries):
        facts = run()
        if rule(facts) is not None:
            break
    return facts


def cured(
    folder: Path,
    rule: Callable[[Facts], Advice | None],
    before: Callable[[Profiler], None],
    after: Callable[[Profiler], None],
    runs: int = 5,
) -> tuple[float, float]:
    """The upper bound of the gain that a rule gives, and the gain that was measured: medians of alternating runs."""
    bounds, gains = [], []
    for _ in range(runs):
        slow, fast = train(folder, before), train(folder, after)
        bounds.append(rule(slow).most)
        gains.append(fast.progress.steps_per_second / slow.progress.steps_per_second)
    return median(bounds), median(gains)


def on_cores(facts: Facts, cores: int) -> Facts:
    """The same facts on a machine with this many cores: a test must not depend on where it runs."""
    return replace(facts, session=replace(facts.session, cores=cores))


def share(facts: Facts, *operations: str) -> float:
    """Share of the wall time, from the accounts."""
    return sum(item.ledger_ns for item in facts.operations if item.operation in operations) / facts.breakdown.wall_ns
