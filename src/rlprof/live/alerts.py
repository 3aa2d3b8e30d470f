"""Decides when a condition has become an alert: once, when it has held long enough, and again only after it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlprof.analysis.report import Report
from rlprof.live.conditions import Condition
from rlprof.live.frame import Frame

ALERT = "alert"
"""Kind of the marks in the session."""
CALM_S = 60.0
"""A condition that did not hold for so long may be reported again."""
BREAK_S = 5.0
"""A gap between two looks, after which a condition has not held all the time: the machine was asleep."""


@dataclass(slots=True)
class _Watched:
    condition: Condition
    holds_since: float | None = None
    looked: float = 0.0
    ended: float = 0.0
    """When it last stopped to hold."""
    reported: bool = False


class Alerts:
    """The state of all conditions of one run. `now` is a monotonic time in seconds."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self._all = [_Watched(condition) for condition in conditions]
        self._references: dict[tuple[str, float], float] = {}

    def needs_report(self, frame: Frame) -> bool:
        """True if a condition compares with a time of the run that is over, and has not been read yet."""
        open_ = (one.condition for one in self._all if one.condition.first_s is not None)
        return any(
            (condition.metric, condition.first_s) not in self._references and frame.wall_s > condition.first_s
            for condition in open_
            if condition.first_s is not None
        )

    def look(self, frame: Frame, report: Report | None, now: float) -> list[str]:
        """The new alerts, each as one sentence without its end."""
        found = (self._look(watched, frame, report, now) for watched in self._all)
        return [text for text in found if text is not None]

    def _look(self, watched: _Watched, frame: Frame, report: Report | None, now: float) -> str | None:
        condition = watched.condition
        text = condition.found(frame, self._reference(condition, report))
        gap, watched.looked = now - watched.looked, now
        if text is None:
            if watched.holds_since is not None:
                watched.holds_since, watched.ended = None, now
            if watched.reported and now - watched.ended >= CALM_S:
                watched.reported = False
            return None
        if watched.holds_since is None or (gap > BREAK_S and not watched.reported):
            watched.holds_since = now
        if watched.reported or now - watched.holds_since < condition.hold_s:
            return None
        watched.reported = True
        return text

    def _reference(self, condition: Condition, report: Report | None) -> float | None:
        """The figure in the first seconds of the training. None until they are over."""
        if condition.first_s is None or report is None:
            return None
        key = condition.metric, condition.first_s
        if key not in self._references:
            found = reference_of(condition.metric, condition.first_s, report)
            if found is None:
                return None
            self._references[key] = found
        return self._references[key]


def reference_of(metric: str, seconds: float, report: Report) -> float | None:
    """Mean of a figure in the first seconds of the iterations. None if these are not over, or nothing was counted."""
    series = report.facts.series
    if not len(series) or series.start_ns[-1] + series.wall_ns[-1] - series.start_ns[0] < seconds * 1e9:
        return None
    end = series.start_ns[0] + seconds * 1e9
    if metric == "memory":
        samples = report.facts.resources.samples
        inside = [
            (own or 0) + (children or 0)
            for time, own, children in zip(samples.time_ns, samples.rss, samples.children_rss)
            if series.start_ns[0] <= time <= end and own is not None
        ]
        return sum(inside) / len(inside) if inside else None
    places = [place for place in range(len(series)) if series.start_ns[place] < end]
    done = series.steps if metric == "steps_per_second" else [b - a + 1 for a, b in zip(series.first, series.last)]
    wall = sum(series.wall_ns[place] for place in places)
    counted = sum(done[place] for place in places)
    return counted / (wall / 1e9) if wall > 0 and counted > 0 else None
