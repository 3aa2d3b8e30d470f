"""Memory grows steadily with the iterations, and does not level off."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.advice.lookup import number, ratio
from rlprof.analysis.drift import Trend, trend_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import count, duration, size

WARM_UP = 0.25
"""Fraction of the samples at the start that is ignored: libraries load, buffers and caches fill."""

LEAST_GROWTH = 32 * 2**20
"""Least growth in bytes after warm-up. Allocators keep or return some tens of megabytes at any time."""
LEAST_SHARE = 0.05
"""Least growth as a fraction of the process's memory at the start."""

SURE = 3.0
"""Standard deviations from chance, as in the rule `slowing_down`."""

STILL_GROWING = 0.5
"""Fraction of the whole slope, over the last two fifths and over the last two tenths. Below it, growth levels off."""

AT_EXIT = 0.1
"""Largest fraction of the samples (but at least FEWEST_AT_EXIT samples) that may date from after the training's end."""
FEWEST_AT_EXIT = 3
FREED = 0.25
"""Fraction of the growth (but at least LEAST_GROWTH) that a process frees at exit, and no allocator frees before."""


def memory_growth(facts: Facts) -> Advice | None:
    samples = facts.resources.samples
    for name, sizes in (("The process", samples.rss), ("The child processes", samples.children_rss)):
        known = [(number(time) / 1e9, number(size)) for time, size in zip(samples.time_ns, sizes) if size is not None]
        points = _before_exit(known, number(next(reversed(facts.series.start_ns), 0)) / 1e9)
        trend = _steady_growth(points[int(WARM_UP * len(points)) :])
        if trend is not None:
            return _advice(facts, name, points, trend)
    return None


def _before_exit(points: Sequence[tuple[float, float]], last_iteration: float) -> Sequence[tuple[float, float]]:
    """Leave out the last samples if they were taken after the training had freed its memory.

    The exit is in the last iteration, which lasts until the recording ends, or in the last samples if iterations are
    long or not marked. It begins after the highest sample if all later samples are far lower.
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
    """Slope from the second to last part to the last part."""
    part = len(points) // parts
    (then, before), (now, after) = (
        (median(time for time, _ in group), median(value for _, value in group))
        for group in (points[-2 * part : -part], points[-part:])
    )
    return (after - before) / (now - then) if now > then else 0.0


def _advice(facts: Facts, name: str, points: Sequence[tuple[float, float]], trend: Trend) -> Advice:
    (began, _), (ended, _) = points[0], points[-1]
    samples = facts.resources.samples
    until = [
        left for time, left in zip(samples.time_ns, samples.machine_available) if left and number(time) / 1e9 <= ended
    ]
    free = number(until[-1] if until else None)
    per_iteration = ratio(trend.slope * ratio(facts.progress.wall_ns, 1e9), facts.progress.iterations)
    evidence = [
        f"{name} went from {size(trend.start)} to {size(trend.end)} after warm-up, {size(60 * trend.slope)} per minute "
        f"(a trend {count(round(trend.z, 1))} standard deviations from chance).",
        f"The growth continues to the end of the sampled {duration((ended - began) * 1e9)}.",
    ]
    if per_iteration:
        evidence.insert(1, f"That is {size(per_iteration)} per iteration.")
    if free:
        left = duration(ratio(free, trend.slope) * 1e9)
        evidence.append(f"At this rate the machine's free memory ({size(free)}) lasts for {left}.")
    return Advice(
        rule="memory_growth",
        title=f"{name} took {size(60 * trend.slope)} more memory per minute, without levelling off.",
        operations=(),
        evidence=tuple(evidence),
        action="Look for objects that are never freed: losses stored without `.detach()` or `.item()`, lists of "
        "episodes, environments that are not closed. A replay buffer also grows until it is full.",
        gain=None,
        check="Run again for the same time and see in `rlprof report` whether memory levels off. Spans with "
        "`track_memory=True` show in which operation it rises.",
    )
