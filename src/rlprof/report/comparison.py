"""A comparison as text: the verdict, what each component contributes, and how sure that is."""

from __future__ import annotations

from functools import partial

from rich.console import Console

from rlprof.analysis.comparison import MARGIN, Comparison, Component, Interval
from rlprof.analysis.figures import duration, rate
from rlprof.report.layout import Column, Layout, plain

NO_EVIDENCE = "~"


def to_text(comparison: Comparison, width: int = 100) -> str:
    return plain(partial(render, comparison), width)


def render(comparison: Comparison, console: Console) -> None:
    """The verdict first; who reads on finds its parts."""
    layout = Layout(console)
    layout.line(verdict(comparison), "bold")
    layout.line(f"A: rlprof {comparison.a}")
    layout.line(f"B: rlprof {comparison.b}")
    unit = "step" if comparison.per_step else "iteration"
    a, b = (rate(1e9 / ns) for ns in (comparison.a_ns, comparison.b_ns))
    layout.line(f"{unit}s per second: {a} in A, {b} in B; by CPU time B is faster by {shown(comparison.cpu)}.")
    if comparison.work is not None:
        layout.line(f"The workload differs: {comparison.work}.", "bold")
    layout.heading(f"Time a {unit}, by component")
    names = [component.name for component in comparison.components]
    layout.table("component", names, comparison.components, _COLUMNS)
    layout.line(
        f'"{NO_EVIDENCE}": no evidence of a difference. "Of the whole": of A\'s time a {unit}, what B saves there; '
        "these sum to the whole saving, but for what taking turns costs."
    )
    pairs = f"{comparison.pairs} pairs of processes that took turns"
    chance = comparison.permutation_p
    layout.line(f"From {pairs}" + ("." if chance is None else f"; permutation test: p = {chance:.3f}."))


def verdict(comparison: Comparison) -> str:
    """One of four sentences."""
    speedup = comparison.speedup
    size = Interval(abs(speedup.estimate), speedup.low, speedup.high)
    match comparison.verdict:
        case "faster" | "slower":
            return f"B is {comparison.verdict} by {_percent(size.estimate)} {_range(speedup)}."
        case "same":
            return f"The same within ±{_percent(MARGIN)}: B is faster by {shown(speedup)}."
    if comparison.least_seen is None:
        return f"No evidence: one pair cannot tell. B was faster by {_percent(speedup.estimate)} in it."
    least = _percent(comparison.least_seen)
    return f"No evidence: B is faster by {shown(speedup)}, and this run could only have seen {least} or more."


def shown(interval: Interval) -> str:
    """`6.0 % [2.6, 9.6]`."""
    return f"{_percent(interval.estimate)} {_range(interval)}".rstrip()


def _speedup(component: Component) -> str:
    if component.speedup is None:
        return "only in A" if component.a_ns > component.b_ns else "only in B"
    return shown(component.speedup) if component.significant else NO_EVIDENCE


_COLUMNS: tuple[Column[Component], ...] = (
    Column("A", 7, lambda component: duration(component.a_ns)),
    Column("B", 7, lambda component: duration(component.b_ns)),
    Column("B is faster by", 24, _speedup),
    Column("of the whole", 12, lambda component: f"{100 * component.contribution:+.1f}%"),
)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def _range(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return ""
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
