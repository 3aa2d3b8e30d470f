"""Memory grows steadily with the iterations, and does not level off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from statistics import median

from rlprof.analysis.advice.check import report_again
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.lookup import fraction, number, ratio
from rlprof.analysis.code import Growth, Line
from rlprof.analysis.drift import Trend, trend_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import count, duration, size

PROCESS = "The process"
FILLING = 1.3
"""Times the memory of replay buffers that were filled. Growth below is theirs."""
SOON = 2 * 3600.0
"""Seconds until the machine's memory is full. A training that runs longer will be killed."""
MUCH = 0.02
"""Least growth as a fraction of the free memory. What a few seconds show says little about two hours."""

WARM_UP = 0.25
"""Fraction of the samples at the start that is ignored: libraries load, buffers and caches fill."""

LEAST_GROWTH = 32 * 2**20
"""Least growth in bytes after warm-up. Allocators keep or return some tens of megabytes at any time."""
LEAST_SHARE = 0.05
"""Least growth as a fraction of the process's memory at the start."""

SURE = 3.0
"""Standard deviations from chance, as in the rule `slowing_down`."""

ALLOCATED = 0.4
"""Least growth of the allocated memory, as a fraction of the growth in use. Allocators reuse what was freed, so a leak
may allocate less than it takes."""

APART = 0.5
"""Times the usual time between two samples."""
FEWEST_SAMPLES = 6
ENOUGH_SAMPLES = 24
"""With fewer, a trend is not tested but must be obvious."""
LARGE_GROWTH = 64 * 2**20
LARGE_SHARE = 0.1
RISING = 0.85
"""Least fraction of the samples that are above the one before."""

STILL_GROWING = 0.5
"""Fraction of the whole slope, over the last two fifths and over the last two tenths. Below it, growth levels off."""

STANDS_OUT = 2.0
"""Least density of growth in a line to name it without further evidence."""
STORES = re.compile(r"\.(?:append|appendleft|extend|add|setdefault)\((?!(?:float|int|len|str)\()|\+=\s*\[")
"""Text of lines that put something into a container. Between two samples of the memory many lines run, so a line that
stores is named even if others have more of the growth."""
STORED = 2**20
"""Least growth in bytes while such a line was sampled."""

AT_EXIT = 0.1
"""Largest fraction of the samples (but at least FEWEST_AT_EXIT samples) that may date from after the training's end."""
FEWEST_AT_EXIT = 3
FREED = 0.25
"""Fraction of the growth (but at least LEAST_GROWTH) that a process frees at exit, and no allocator frees before."""


def memory_growth(facts: Facts) -> Finding | None:
    samples = facts.resources.samples
    for name, sizes in ((PROCESS, samples.rss), ("The child processes", samples.children_rss)):
        known = [(number(time) / 1e9, number(size)) for time, size in zip(samples.time_ns, sizes) if size is not None]
        points = _before_exit(_apart(known), number(next(reversed(facts.series.start_ns), 0)) / 1e9)
        late = points[int(WARM_UP * len(points)) :]
        trend = _steady_growth(late)
        if trend is None or trend.end - trend.start <= FILLING * _buffers(facts):
            continue
        if name != PROCESS or _allocates(facts, late):
            return _advice(facts, name, points, trend)
    return None


def _allocates(facts: Facts, points: Sequence[tuple[float, float]]) -> bool:
    """False if the process only uses memory that it had allocated before: an array that fills up, such as a replay
    buffer. True if that is not known."""
    (began, first), (ended, last) = points[0], points[-1]
    samples = facts.resources.samples
    during = [
        number(size)
        for time, size in zip(samples.time_ns, samples.allocated)
        if size is not None and began <= number(time) / 1e9 <= ended
    ]
    return len(during) < FEWEST_SAMPLES or during[-1] - during[0] >= ALLOCATED * (last - first)


def _apart(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without samples right after another one: the end of a run takes two."""
    gaps = [after[0] - before[0] for before, after in pairwise(points)]
    least = APART * median(gaps) if gaps else 0.0
    return [*points[:1], *(point for point, gap in zip(points[1:], gaps) if gap >= least)]


def _buffers(facts: Facts) -> float:
    """Bytes that replay buffers have taken by filling up."""
    known = (one for one in facts.evidence.buffers if one.bytes is not None and one.capacity)
    return sum(number(one.bytes) * fraction(one.filled, one.capacity) for one in known)


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


def _short_growth(points: Sequence[tuple[float, float]]) -> Trend | None:
    """Of a run of seconds: growth that is large, and goes on in nearly every sample."""
    if not FEWEST_SAMPLES <= len(points) < ENOUGH_SAMPLES:
        return None
    (began, first), (ended, last) = points[0], points[-1]
    rising = sum(after > before for (_, before), (_, after) in pairwise(points))
    if last - first < max(LARGE_GROWTH, LARGE_SHARE * first) or rising < RISING * (len(points) - 1):
        return None
    # Rising in so many of so few steps, where each rises by chance half of the time.
    z = (2 * rising - (len(points) - 1)) / sqrt(len(points) - 1)
    return Trend((last - first) / (ended - began), first, last, z) if ended > began else None


def _steady_growth(points: Sequence[tuple[float, float]]) -> Trend | None:
    if (short := _short_growth(points)) is not None:
        return short
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


def _place(facts: Facts, growth: Sequence[Growth]) -> tuple[Line | None, str]:
    """The line in which memory rises faster than elsewhere; if there is none, a line that stores something."""
    if growth and growth[0].density >= STANDS_OUT:
        return growth[0].line, f", most of it at {growth[0].line.where}"
    stores = [grown for grown in facts.code.growth if grown.bytes >= STORED and STORES.search(grown.line.source)]
    if stores:
        return stores[0].line, f". {stores[0].line.where} stores data that may never be freed"
    return None, ""


def _advice(facts: Facts, name: str, points: Sequence[tuple[float, float]], trend: Trend) -> Finding:
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
    growth = [grown for grown in facts.code.growth[:3] if grown.bytes >= LEAST_GROWTH] if name == PROCESS else []
    place, where = _place(facts, growth) if name == PROCESS else (None, "")
    evidence += [
        f"{grown.line.where} (in {grown.operation}): {size(grown.bytes)} more over the run." for grown in growth
    ]
    if free:
        left = duration(ratio(free, trend.slope) * 1e9)
        evidence.append(f"At this rate the machine's free memory ({size(free)}) lasts for {left}.")
    return Finding(
        rule="memory_growth",
        cause=f"{name} took {size(60 * trend.slope)} more memory per minute, without levelling off{where}.",
        place=place,
        operations=tuple(dict.fromkeys(grown.operation for grown in growth)),
        evidence=tuple(evidence),
        change="Look for objects that are never freed: losses stored without `.detach()` or `.item()`, lists of "
        "episodes, environments that are not closed. A replay buffer also grows until it is full.",
        gain=None,
        check=report_again(facts),
        urgent=0 < ratio(free, trend.slope) < SOON and trend.end - trend.start >= MUCH * free,
    )
