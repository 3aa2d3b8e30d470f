"""A simulated training: lanes that compute and wait. It gives both what a session would show and the truth.

The truth about a faster operation is the same training with less work. Nothing here uses the models of rlprof.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlprof.analysis.lane_work import DRIVER, IterationBatch, Piece, Work

Task = Sequence[tuple[str, float]]
"""Operations, one after the other, and how long each computes."""


@dataclass
class Paper:
    """When each lane worked on which operation, in ns."""

    spans: list[tuple[str, str, float, float, float]] = field(default_factory=list)
    """Lane, operation, start, end and CPU time."""
    end: float = 0.0

    def work(self, lane: str, operation: str, start: float, duration: float, cpu: float | None = None) -> float:
        self.spans.append((lane, operation, start, start + duration, duration if cpu is None else cpu))
        self.end = max(self.end, start + duration)
        return start + duration

    def batch(self, kind: str) -> IterationBatch:
        """The accounts of the ledger. While the driver waits, the working lanes share the time in equal parts."""
        ledger: defaultdict[tuple[str, str], float] = defaultdict(float)
        overlapped: defaultdict[tuple[str, str], float] = defaultdict(float)
        edges = sorted({edge for _, _, start, end, _ in self.spans for edge in (start, end)} | {0.0, self.end})
        for left, right in itertools.pairwise(edges):
            at_work = [(lane, name) for lane, name, start, end, _ in self.spans if start <= left and right <= end]
            busy = [key for key in at_work if key[0] == DRIVER]
            others = [key for key in at_work if key[0] != DRIVER]
            for key in busy or others:
                ledger[key] += (right - left) / len(busy or others)
            for key in others if busy else ():
                overlapped[key] += right - left
            if not at_work:
                ledger[DRIVER, "wait"] += right - left
        works: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for lane, name, start, end, cpu in self.spans:
            works[lane, name][0] += end - start
            works[lane, name][1] += cpu
        pieces = []
        for lane, name in {*ledger, *works}:
            group = ("main", "thread", True) if lane == DRIVER else ("worker-#", kind, False)
            key = lane, name
            pieces.append(Piece((name,), lane, *group, *works[key], ledger[key], overlapped[key]))
        return IterationBatch(1, self.end, 10, tuple(pieces))


def faster(task: Task, saving: Mapping[str, float]) -> Task:
    return [(name, duration * saving.get(name, 1.0)) for name, duration in task]


def serial(steps: Sequence[Task]) -> Paper:
    paper, now = Paper(), 0.0
    for task in steps:
        for name, duration in task:
            now = paper.work(DRIVER, name, now, duration)
    return paper


def pool(steps: Sequence[tuple[Task, Sequence[Task]]], one_at_a_time: bool = False) -> Paper:
    """In each step the driver works, then gives each lane a task and waits for the last. If `one_at_a_time`, the lanes
    share the GIL: each proceeds at an equal part of the speed."""
    paper, now = Paper(), 0.0
    for own, tasks in steps:
        for name, duration in own:
            now = paper.work(DRIVER, name, now, duration)
        if one_at_a_time:
            now = _sharing(paper, tasks, now)
        else:
            now = max((_unshared(paper, lane, task, now) for lane, task in enumerate(tasks)), default=now)
    paper.end = now
    return paper


def _unshared(paper: Paper, lane: int, task: Task, now: float) -> float:
    for name, duration in task:
        now = paper.work(f"worker {lane}", name, now, duration)
    return now


def _sharing(paper: Paper, tasks: Sequence[Task], now: float) -> float:
    left = {lane: [list(part) for part in task if part[1] > 0] for lane, task in enumerate(tasks)}
    while any(left.values()):
        at_work = [lane for lane, task in left.items() if task]
        least = min(left[lane][0][1] for lane in at_work)
        for lane in at_work:
            name = left[lane][0][0]
            paper.work(f"worker {lane}", name, now, least * len(at_work), least)
            left[lane][0][1] -= least
            if left[lane][0][1] <= 1e-9:
                left[lane].pop(0)
        now += least * len(at_work)
    return now


def queue(items: int, actor: Task, learner: Task, capacity: int = 2) -> Paper:
    """One lane makes items and waits for room. The driver takes them and waits for the next."""
    paper = Paper()
    made: list[float] = []
    taken: list[float] = []
    actor_free = driver_free = 0.0
    for number in range(items):
        start = max(actor_free, taken[number - capacity] if number >= capacity else 0.0)
        made.append(_unshared(paper, 0, actor, start))
        actor_free = made[-1]
        taken.append(max(driver_free, made[-1]))
        driver_free = taken[-1]
        for name, duration in learner:
            driver_free = paper.work(DRIVER, name, driver_free, duration)
    return paper


def session(papers: Sequence[Paper], kind: str = "thread", cores: int = 16) -> Work:
    return Work(cores, True, tuple(paper.batch(kind) for paper in papers))
