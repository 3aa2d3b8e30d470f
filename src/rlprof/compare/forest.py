"""The forest plot of a comparison: intervals of B's speed relative to A's, on a log axis, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rlprof.analysis.comparison import Comparison
from rlprof.analysis.inference import Interval
from rlprof.render.html.markup import Markup, element
from rlprof.render.intervals import range_of, shown

_WIDTH, _HEIGHT, _MARGIN = 320, 20, 26
"""The margin has room for half of a label of the axis."""
_LEAST, _MOST = 1.05, 100.0
"""Ends of the axis, as ratios of speeds: at least 0.95x to 1.05x, at most 0.01x to 100x."""
_TICKS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)


class Scale:
    """From a speedup to a place on the axis, symmetric around no difference."""

    def __init__(self, comparison: Comparison) -> None:
        """Reaches as far as the significant intervals. Others may be off the scale."""
        sure = [one.speedup for one in comparison.components if one.significant and one.speedup is not None]
        ends = [end for found in (comparison.speedup, *sure) for end in (found.low, found.high, found.estimate)]
        farthest = max(abs(_log(end)) for end in ends if end is not None)
        self._reach = min(math.log(_MOST), max(math.log(_LEAST), 1.05 * farthest))

    def line(self, interval: Interval, certain: bool) -> Markup:
        """An interval, with a dot at its estimate if there is evidence, and an arrow where it leaves the scale."""
        paint = "var(--accent)" if certain else "var(--cat-remaining)"
        parts = [self._tick(1.0)]
        if interval.low is not None and interval.high is not None:
            ends = {"x1": self._place(interval.low), "x2": self._place(interval.high)}
            parts.append(element("line", **ends, y1=_HEIGHT / 2, y2=_HEIGHT / 2, stroke=paint, stroke_width=2))
            parts += [_arrow(side, paint) for side in self._outside(interval.low, interval.high)]
        if certain:
            beyond = list(self._outside(interval.estimate, interval.estimate))
            dot = element("circle", cx=self._place(interval.estimate), cy=_HEIGHT / 2, r=4, fill=paint)
            parts += [_arrow(side, paint) for side in beyond] or [dot]
        label = shown(interval) if certain else f"no evidence {range_of(interval)}"
        return _svg(parts, label)

    def axis(self) -> Markup:
        """The ticks with their labels, as the header of the column."""
        parts = []
        for ratio in self._ticks():
            label = element(
                "text",
                f"{ratio:.2f}".rstrip("0").rstrip(".") + "x",
                x=self._place(ratio - 1),
                y=_HEIGHT - 8,
                text_anchor="middle",
            )
            parts += [label, self._tick(ratio, _HEIGHT - 4)]
        return _svg(parts, "B's speed relative to A's, on a log scale")

    def _ticks(self) -> list[float]:
        """No difference, and one or two ratios on both sides with room between their labels."""
        inside = [ratio for ratio in _TICKS if math.log(ratio) <= self._reach]
        outer = inside[-1]
        inner = [ratio for ratio in inside if 0.35 < math.log(ratio) / math.log(outer) < 0.65]
        above = [*inner[-1:], outer]
        return [*(1 / ratio for ratio in reversed(above)), 1.0, *above]

    def _place(self, value: float) -> str:
        inside = max(-self._reach, min(self._reach, _log(value)))
        return f"{_WIDTH / 2 + inside / self._reach * (_WIDTH / 2 - _MARGIN):.1f}"

    def _outside(self, low: float, high: float) -> Iterator[int]:
        """-1 and 1 for the sides on which an interval leaves the scale."""
        if _log(low) < -self._reach:
            yield -1
        if _log(high) > self._reach:
            yield 1

    def _tick(self, ratio: float, top: float = 0) -> Markup:
        place = self._place(ratio - 1)
        return element("line", x1=place, x2=place, y1=top, y2=_HEIGHT, stroke="var(--line)")


def _log(speedup: float) -> float:
    """Of the ratio of speeds. A speedup of -100 % has none, but is off every scale."""
    return math.log(max(1e-9, 1 + speedup))


def _arrow(side: int, paint: str) -> Markup:
    tip, middle = _WIDTH / 2 + side * (_WIDTH / 2 - _MARGIN + 12), _HEIGHT / 2
    back = tip - side * 12
    return element("polygon", points=f"{tip},{middle} {back},{middle - 5} {back},{middle + 5}", fill=paint)


def _svg(parts: list[Markup], label: str) -> Markup:
    return element("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label)
