"""Memory grows steadily with the iterations, and does not level off."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.advice.arithmetic import number, ratio
from rlprof.analysis.drift import Trend, trend_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import count, duration, size

WARM_UP = 0.25
"""Of the samples, at the start: libraries load, buffers and caches fill."""

LEAST_GROWTH = 32 * 2**20
"""Bytes since then. Allocators keep some tens of megabytes back or give them back as they please."""
LEAST_SHARE = 0.05
"""Of what the process had: a growth that is worth a look in a run of this length."""

SURE = 3.0
"""Standard deviations, as in the test for slower training."""

STILL_GROWING = 0.5
"""Of the whole slope, over the last two fifths and over the last two tenths: below it, the growth levels off."""


AT_EXIT = 0.1
"""Of the samples, and at least FEWEST_AT_EXIT, at most: those that may have been taken after the training's end."""
FEWEST_AT_EXIT = 3
FREED = 0.25
"""Of the growth, and at least LEAST_GROWTH: what an exit gives back, and an allocator during training does not."""


def memory_growth(facts: Facts) -> Advice | None:
    samples = facts.resources.samples
    for name, sizes in (("The process", samples.rss), ("The child processes", samples.children_rss)):
        known = [
            (number(time) / 1e9, number(value)) for time, value in zip(samples.time_ns, sizes) if value is not None
        ]
        points = _before_exit(known, number(next(reversed(facts.series.start_ns), 0)) / 1e9)
        trend = _steady_growth(points[int(WARM_UP * len(points)) :])
        if trend is not None:
            return _say(facts, name, points, trend)
    return None


def _before_exit(points: Sequence[tuple[float, float]], last_iteration: float) -> Sequence[tuple[float, float]]:
    """Without the samples at the end that were taken when the training had given its memory back.

    The last iteration has no end of its own: it lasts until the recording ends. So in it, or in the last samples
    where iterations are long or not known, the exit begins after the highest sample, if all others are far below it.
    """
    most = max(FEWEST_AT_EXIT, int(AT_EXIT * len(points)))
    first = next((place for place, (time, _) in enumerate(points) if time > last_iteration), len(points))
    first = max(0, len(points) - most, min(first, len(points) - FEWEST_AT_EXIT)) - 1
    if first < 0:
        return points
    peak = max(range(first, len(points)), key=lambda place: points[place][1])
    highest = points[peak][1]
    freed = max(LEAST_GROWTH, FREED * (highest - points[0][1]))
    ended = all(value < highest - freed for _, value in points[peak + 1 :])
    return points[: peak + 1] if ended else points


def _steady_growth(points: Sequence[tuple[float, float]]) -> Trend | None:
    whole = trend_of([time for time, _ in points], [value for _, value in points])
    if whole is None or whole.z < SURE or whole.slope <= 0:
        return None
    if whole.end - whole.start < max(LEAST_GROWTH, LEAST_SHARE * whole.start):
        return None
    return whole if all(_late_slope(points, parts) >= STILL_GROWING * whole.slope for parts in (5, 10)) else None


def _late_slope(points: Sequence[tuple[float, float]], parts: int) -> float:
    """From the last part but one to the last."""
    part = len(points) // parts
    (then, before), (now, after) = (
        (median(time for time, _ in group), median(value for _, value in group))
        for group in (points[-2 * part : -part], points[-part:])
    )
    return (after - before) / (now - then) if now > then else 0.0


def _say(facts: Facts, name: str, points: Sequence[tuple[float, float]], trend: Trend) -> Advice:
    (began, _), (ended, _) = points[0], points[-1]
    samples = facts.resources.samples
    until = [
        left for time, left in zip(samples.time_ns, samples.machine_available) if left and number(time) / 1e9 <= ended
    ]
    free = number(until[-1] if until else None)
    per_iteration = ratio(trend.slope * ratio(facts.progress.wall_ns, 1e9), facts.progress.iterations)
    evidence = [
        f"{name} went from {size(trend.start)} to {size(trend.end)} after warm-up, {size(60 * trend.slope)} a minute "
        f"on a trend {count(round(trend.z, 1))} standard deviations from chance.",
        f"The growth goes on to the end of the {duration((ended - began) * 1e9)} that were sampled.",
    ]
    if per_iteration:
        evidence.insert(1, f"That is {size(per_iteration)} an iteration.")
    if free:
        left = duration(ratio(free, trend.slope) * 1e9)
        evidence.append(f"At this pace the {size(free)} that were left on the machine last for {left}.")
    return Advice(
        rule="memory_growth",
        title=f"{name} took {size(60 * trend.slope)} more memory each minute, and it did not level off.",
        operations=(),
        evidence=tuple(evidence),
        action="Look for what is kept: losses stored without `.detach()` or `.item()`, lists of episodes, environments "
        "made and not closed; a replay buffer that is still filling grows too, and stops at its capacity.",
        gain=None,
        check="Run again for as long, and see in `rlprof report` whether memory levels off; spans with "
        "`track_memory=True` show which operation it rises in.",
    )
