"""The rules of the ledger, applied the slow way to known intervals. `ledger_accuracy.py` compares rlprof with this.

Nothing of rlprof is used here. Every instant between two neighbouring timestamps is looked at on its own, and the three
rules are applied to it as docs/ledger.md states them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

DRIVER = "driver"
UNATTRIBUTED = "unattributed"


@dataclass(frozen=True, slots=True)
class Stay:
    """A span: when a lane entered and left an operation, in ns."""

    lane: str
    account: str
    start: float
    end: float
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """When the event loop of the driver began and ended executing a task, in ns."""

    lane: str
    start: float
    end: float


@dataclass(slots=True)
class History:
    """Everything that happened, or was planned to happen, between start and end."""

    stays: list[Stay] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    start: float = 0
    end: float = 0

    @property
    def wall(self) -> float:
        return self.end - self.start


def accounts_of(history: History) -> dict[str, float]:
    """The correct time of each account, in ns."""
    due: defaultdict[str, float] = defaultdict(float)
    for stay in history.stays:
        due[stay.account] += 0
    tasks = {run.lane for run in history.runs}
    moments = {history.start, history.end}
    moments.update(moment for stay in history.stays for moment in (stay.start, stay.end))
    moments.update(moment for run in history.runs for moment in (run.start, run.end))
    cuts = sorted(moment for moment in moments if history.start <= moment <= history.end)
    for begin, end in pairwise(cuts):
        owners = _owners(history, tasks, (begin + end) / 2)
        for owner in owners:
            due[owner] += (end - begin) / len(owners)
    return dict(due)


def _owners(history: History, tasks: set[str], instant: float) -> list[str]:
    """The accounts that share this instant in equal parts."""
    innermost = _innermost(history.stays, instant)
    elsewhere = [stay for lane, stay in innermost.items() if lane != DRIVER and lane not in tasks]
    working = [stay.account for stay in elsewhere if not stay.waits]
    executing = next((run.lane for run in history.runs if run.start <= instant < run.end), None)
    suspended = [stay.account for lane, stay in innermost.items() if lane in tasks]
    if executing is None and suspended:  # the event loop waits, and the tasks wait for the loop
        return working or suspended
    current = innermost.get(executing or DRIVER) or innermost.get(DRIVER)
    if current is None:
        return [UNATTRIBUTED]
    if current.waits and working:
        return working
    return [current.account]


def _innermost(stays: Iterable[Stay], instant: float) -> dict[str, Stay]:
    found: dict[str, Stay] = {}
    for stay in stays:
        if stay.start <= instant < stay.end and (stay.lane not in found or found[stay.lane].start <= stay.start):
            found[stay.lane] = stay
    return found
