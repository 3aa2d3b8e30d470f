"""How a confidence interval is written: `faster by 6.0% [2.6, 9.6]`."""

from __future__ import annotations

from rlprof.analysis.inference import Interval


def faster_or_slower(interval: Interval) -> str:
    """`faster by 6.0% [2.6, 9.6]`, or `slower by` the same interval turned round."""
    return f"faster by {shown(interval)}" if interval.estimate >= 0 else f"slower by {shown(interval.turned)}"


def shown(interval: Interval) -> str:
    """`6.0% [2.6, 9.6]`."""
    return f"{percent_of(interval.estimate)} {range_of(interval)}".rstrip()


def percent_of(fraction: float) -> str:
    """`6.0%`."""
    return f"{_percent(fraction)}%"


def range_of(interval: Interval) -> str:
    """`[2.6, 9.6]`, in percent; empty if the interval is unknown."""
    if interval.low is None or interval.high is None:
        return ""
    return f"[{_percent(interval.low)}, {_percent(interval.high)}]"


def range_in_words(interval: Interval) -> str:
    """`between 2.6% slower and 9.6% faster`, of an interval with zero in it. Its middle is not a result."""
    assert interval.low is not None
    assert interval.high is not None
    slower, faster = percent_of(max(0.0, -interval.low)), percent_of(max(0.0, interval.high))
    return f"between {slower} slower and {faster} faster"


def _percent(fraction: float) -> str:
    """`2.6`; `3074` where a decimal would say nothing."""
    return f"{100 * fraction:.1f}" if abs(fraction) < 10 else f"{100 * fraction:.0f}"
