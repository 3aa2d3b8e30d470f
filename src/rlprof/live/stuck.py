"""Recognizes a training that makes no progress: a deadlock, a worker that hangs, or a process that was stopped."""

from __future__ import annotations

from collections.abc import Sequence

from rlprof.analysis.facts import RUNNING, UNKNOWN
from rlprof.analysis.figures import duration
from rlprof.live.frame import LaneNow, Stuck
from rlprof.render.names import bounded

ITERATIONS = 10
"""A training is stuck if no span has ended for so many typical iterations, and at least LEAST_SECONDS."""
LEAST_SECONDS = 30.0
WITHOUT_ITERATIONS_SECONDS = 300.0
"""The same for a training whose iterations are not known."""
LATE_SECONDS = 15.0
"""A training that has not flushed for so long does not write any more. Usually it flushes once per second."""
LONGEST_NAME = 60


def stuck_of(
    *,
    now: float,
    state: str,
    written: float,
    idle_s: float | None,
    iteration_ns: float | None,
    lanes: Sequence[LaneNow],
    is_stopped: bool = False,
) -> Stuck | None:
    """Why a training makes no progress, or None if it does.

    now: Unix time in seconds.
    state: as in `Frame`.
    written: Unix time of the last flush.
    idle_s: at the last flush, the seconds since a span had ended. None if that is unknown.
    iteration_ns: median duration of an iteration, if known.
    lanes: as of the last flush.
    is_stopped: the process does not run at all: see `process_state.is_stopped`.
    """
    age = max(0.0, now - written)
    if not written or state not in (RUNNING, UNKNOWN):
        return None
    if state == UNKNOWN:
        if age > LATE_SECONDS:
            return None  # on another machine: it may have been killed
        age = 0.0  # the clocks of two machines differ
    seconds = (idle_s or 0.0) + age
    if seconds < (LEAST_SECONDS if is_stopped else patience(iteration_ns)):
        return None
    inside = sorted((lane for lane in lanes if lane.alive and lane.doing), key=lambda lane: not lane.on_driver)
    if is_stopped:
        reason = "The process was stopped (SIGSTOP, Ctrl-Z or a paused container)."
    elif age > LATE_SECONDS:
        known = "native code holds Python's GIL, or the disk does not answer"
        reason = f"The process has not written for {whole_seconds(age)}: {known}."
    else:
        reason = _Reason(inside, seconds, age).sentence()
    return Stuck(now - seconds, seconds, reason, tuple(inside))


def patience(iteration_ns: float | None) -> float:
    """Seconds without the end of a span after which a training is stuck."""
    if not iteration_ns:
        return WITHOUT_ITERATIONS_SECONDS
    return max(LEAST_SECONDS, ITERATIONS * iteration_ns / 1e9)


def inside_s(lane: LaneNow, seconds: float, age: float) -> float | None:
    """Seconds for which a lane has been inside its operation. None if that is unknown, or if it is not inside for long.

    seconds: since when no span has ended, which is the same moment if there is less than a second between them.
    age: seconds since the last flush.
    """
    if lane.since_s is None:
        return None
    found = lane.since_s + age
    if abs(found - seconds) < 1.0:
        return seconds
    return found if found >= seconds / 2 else None


class _Reason:
    """One sentence about the lanes that are inside an operation."""

    def __init__(self, inside: Sequence[LaneNow], seconds: float, age: float) -> None:
        self._seconds, self._age = seconds, age
        self._inside = inside
        self._driver = next((lane for lane in inside if lane.on_driver), None)
        self._others = [lane for lane in inside if not lane.on_driver and not lane.waits]

    def sentence(self) -> str:
        driver, others = self._driver, self._others
        if driver is None and others:
            return f"{_names(others)} {self._place(others)}, and the driver is outside of all operations."
        if driver is None:
            since = whole_seconds(self._seconds)
            return f"The driver is outside of all operations, and no operation has ended for {since}."
        if not driver.waits:
            return f"The driver {self._place([driver])}."
        waited = [lane for lane in others if lane.name in driver.waits_for] or others
        where = _bounded(driver.doing[-1])
        if waited:
            return f"The driver waits in {where} for {_names(waited)}, which {self._place(waited)}."
        since = self._since([driver])
        verb = f"has waited in {where} for {since}" if since else f"waits in {where}"
        return f"The driver {verb}, and no other lane works inside an operation."

    def _place(self, lanes: Sequence[LaneNow]) -> str:
        """`have been inside env_step for at least 45 s`. Names the operation that most of the lanes are inside."""
        operations = [lane.doing[-1] for lane in lanes]
        most = max(operations, key=operations.count)
        where = f"inside {_bounded(most)}" + ("" if operations.count(most) == len(lanes) else " and other operations")
        since = self._since(lanes)
        if not since:
            return f"{'is' if len(lanes) == 1 else 'are'} {where}"
        return f"{'has' if len(lanes) == 1 else 'have'} been {where} for {since}"

    def _since(self, lanes: Sequence[LaneNow]) -> str:
        """`at least 45 s`. Empty if it is unknown, or if a span began late: a loop that polls begins it repeatedly."""
        times = [seconds for lane in lanes if (seconds := inside_s(lane, self._seconds, self._age)) is not None]
        if len(times) < len(lanes):
            return ""
        return f"{'' if len(lanes) == 1 else 'at least '}{whole_seconds(min(times))}"


def _names(lanes: Sequence[LaneNow]) -> str:
    """`env-3 and 3 other lanes`. The one that has been inside its operation for longest comes first."""
    first = _bounded(max(lanes, key=lambda lane: lane.since_s or 0.0).name)
    others = len(lanes) - 1
    return f"{first} and {others} other lane{'s' if others > 1 else ''}" if others else first


def _bounded(name: str) -> str:
    return bounded(name, LONGEST_NAME)


def whole_seconds(seconds: float) -> str:
    """`38 s`, `15m01s`. All sentences on a stuck training round alike."""
    return f"{seconds:.0f} s" if seconds < 99.5 else duration(round(seconds) * 1e9)
