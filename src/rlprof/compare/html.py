"""A comparison as one HTML page: the verdict, a forest plot of the components, the differences between the arms."""

from __future__ import annotations

from rlprof.analysis.comparison import Comparison
from rlprof.analysis.figures import duration, many, rate
from rlprof.analysis.inference import Interval
from rlprof.compare.text import basis, legend, notes, speedup_of, time_of, verdict, verdict_of
from rlprof.render.html.markup import Markup, element, figures, join, plain_name, prose, table
from rlprof.render.html.plain import page
from rlprof.render.intervals import percent_of, range_of, shown

_WIDTH, _HEIGHT, _MARGIN = 320, 20, 6
_MOST_ROWS = 60
"""Further components share one row."""


def to_html(comparison: Comparison) -> str:
    warnings = (element("p", note, class_="warning") for note in notes(comparison))
    computed = (element("p", sentence) for sentence in (basis(comparison), legend(comparison)))
    body = [
        element("section", element("h2", verdict(comparison)), _figures(comparison), *warnings),
        element("section", element("h2", "Where the difference is"), _forest(comparison)),
        element("section", element("h2", "What this is computed from"), *computed),
    ]
    if comparison.changes:
        changes = element("ul", *(element("li", prose(change)) for change in comparison.changes))
        body.append(element("section", element("h2", "What differs between A and B"), changes))
    return page("rlprof compare", "Is B faster than A?", join(body))


def _figures(comparison: Comparison) -> Markup:
    unit = "steps" if comparison.per_step else "iterations"
    items = [
        ("A", f"{rate(1e9 / comparison.a_ns)} {unit}/s", prose(comparison.a)),
        ("B", f"{rate(1e9 / comparison.b_ns)} {unit}/s", prose(comparison.b)),
    ]
    if comparison.work is None:
        items.append(_large("B is faster by", comparison.speedup))
    if comparison.work is None and comparison.cpu is not None:
        items.append(_large("by CPU time", comparison.cpu))
    return figures(items)


def _large(what: str, interval: Interval) -> tuple[str, str, str]:
    """The interval is in small type: a narrow page has no room for both in large type."""
    return what, percent_of(interval.estimate), range_of(interval)


def _forest(comparison: Comparison) -> Markup:
    """The most important columns come first: a narrow page shows the others when it is scrolled."""
    if comparison.work is not None:
        return _times(comparison)
    drawn, rest = comparison.components[:_MOST_ROWS], comparison.components[_MOST_ROWS:]
    saved = sum(one.contribution for one in comparison.components)
    whole = (shown(comparison.speedup), "", _line(comparison.speedup, comparison, True))
    rows = [("all of it", *whole, _saved(saved), duration(comparison.a_ns), duration(comparison.b_ns))]
    rows += [
        (
            plain_name(one.name),
            speedup_of(one),
            verdict_of(one),
            Markup() if one.speedup is None else _line(one.speedup, comparison, one.significant),
            _saved(one.contribution),
            time_of(one, one.a_ns),
            time_of(one, one.b_ns),
        )
        for one in drawn
    ]
    if rest:
        saved_there = _saved(sum(one.contribution for one in rest))
        rows.append((f"{many(len(rest), 'component')} more", "", "", Markup(), saved_there, "", ""))
    reach = f"{100 * _reach(comparison):.0f}"
    headers = ("component", "B is faster by", "verdict", f"from -{reach} to +{reach} %", "saved", "A", "B")
    caption = "Time by component, how much faster B is in it, and the part of A's time that this saves"
    return table(caption, headers, rows)


def _times(comparison: Comparison) -> Markup:
    """Times only: arms that do different work have no speedups."""
    rows = [("all of it", duration(comparison.a_ns), duration(comparison.b_ns))]
    drawn = comparison.components[:_MOST_ROWS]
    rows += [(plain_name(one.name), time_of(one, one.a_ns), time_of(one, one.b_ns)) for one in drawn]
    return table("Time by component", ("component", "A", "B"), rows)


def _saved(contribution: float) -> str:
    return f"{100 * contribution:+.1f} %"


def _reach(comparison: Comparison) -> float:
    """Range of the plot to both sides: that of the significant intervals."""
    sure = [one.speedup for one in comparison.components if one.significant and one.speedup is not None]
    ends = (end for found in (comparison.speedup, *sure) for end in (found.low, found.high))
    return min(10.0, max([0.05, *(abs(end) for end in ends if end is not None)]))


def _line(interval: Interval, comparison: Comparison, certain: bool) -> Markup:
    """An interval on the scale of the plot, cut off at its ends. A faint one has no evidence."""
    reach = _reach(comparison)

    def place(value: float) -> str:
        inside = max(-reach, min(reach, value))
        return f"{_MARGIN + (inside + reach) / (2 * reach) * (_WIDTH - 2 * _MARGIN):.1f}"

    middle, half = _HEIGHT // 2, str(_HEIGHT)
    paint = "var(--accent)" if certain else "var(--cat-remaining)"
    parts = [element("line", x1=place(0), x2=place(0), y1="0", y2=half, stroke="var(--line)")]
    if interval.low is not None and interval.high is not None:
        ends = {"x1": place(interval.low), "x2": place(interval.high), "y1": str(middle), "y2": str(middle)}
        parts.append(element("line", **ends, stroke=paint, stroke_width="2"))
    parts.append(element("circle", cx=place(interval.estimate), cy=str(middle), r="4", fill=paint))
    return element("svg", *parts, width=str(_WIDTH), height=half, role="img", aria_label=shown(interval))
