"""A comparison as text: the verdict, what each component contributes, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

import msgspec
from rich.console import Console

from rlprof.analysis.comparison import MARGIN, TAKING_TURNS, Comparison, Component
from rlprof.analysis.figures import duration, many, rate
from rlprof.analysis.inference import Interval
from rlprof.render.layout import Column, Layout, plain

NO_EVIDENCE = "~"
SCHEMA_VERSION = 1


def to_text(comparison: Comparison, width: int = 100) -> str:
    return plain(partial(render, comparison), width)


def render(comparison: Comparison, console: Console) -> None:
    """The verdict first; who reads on finds its parts."""
    layout = Layout(console)
    layout.line(verdict(comparison), "bold")
    layout.line(f"A: {comparison.a}")
    layout.line(f"B: {comparison.b}")
    unit = "step" if comparison.per_step else "iteration"
    a, b = (rate(1e9 / ns) for ns in (comparison.a_ns, comparison.b_ns))
    by_cpu = (
        "" if comparison.cpu is None or comparison.work is not None else f"; by CPU time B is {said(comparison.cpu)}"
    )
    layout.line(f"{unit}s per second: {a} in A, {b} in B{by_cpu}.")
    for note in notes(comparison):
        layout.line(note, "bold")
    layout.heading(f"Time a {unit}, by component")
    names = [component.name for component in comparison.components]
    layout.table("component", names, comparison.components, _COLUMNS if comparison.work is None else _TIMES)
    layout.line(legend(comparison))
    layout.line(basis(comparison))
    if comparison.changes:
        layout.heading("What differs between A and B")
        for change in comparison.changes:
            layout.line(change, indent=2)


def to_json(comparison: Comparison) -> str:
    """Everything, with the verdict as a word and as a sentence."""
    told = {"schema_version": SCHEMA_VERSION, "verdict": comparison.verdict, "sentence": verdict(comparison)}
    return msgspec.json.format(msgspec.json.encode({**told, **asdict(comparison)})).decode() + "\n"


def notes(comparison: Comparison) -> Iterator[str]:
    """What one must know before one believes it."""
    if comparison.work is not None:
        yield f"The workload differs: {comparison.work}."
    if comparison.sizes is not None:
        yield f"Iterations differ in size: {comparison.sizes}. Times and speeds are per environment step."
    if comparison.interrupted:
        yield "Interrupted: this is the result so far."
    if comparison.drift is not None and not comparison.steady:
        drift = shown(comparison.drift)
        yield f"Not steady: from its start to its end a pair's difference changed by {drift}."


def legend(comparison: Comparison) -> str:
    """How to read the table of components."""
    unit = "step" if comparison.per_step else "iteration"
    saved = f'"Saved": of A\'s mean time a {unit}, what B saves there; these sum to the whole saving.'
    if comparison.work is not None:
        return f"The difference in the work is in these times. {saved}"
    typical = ' "B is faster by": in all turns, or in typical ones where that is surer.' if comparison.pairs else ""
    return f'"{NO_EVIDENCE}": no evidence of a difference, so many components considered.{typical} {saved}'


def basis(comparison: Comparison) -> str:
    """What the figures rest on."""
    intervals = f"intervals of {100 * comparison.confidence:g} %"
    if comparison.sessions is None:
        pairs = many(comparison.pairs, "pair")
        return f"From {pairs} of processes that took turns; {intervals}{_permutation(comparison)}."
    a, b = (many(number, "session") for number in comparison.sessions)
    weaker = (
        f"From {a} of A and {b} of B, recorded apart: weaker than taking turns (rlprof compare 'run ...' 'run ...')"
    )
    return f"{weaker}; {intervals}." if comparison.speedup.low is not None else f"{weaker}."


def _permutation(comparison: Comparison) -> str:
    chance = comparison.permutation_p
    if chance is None:
        return ""
    too_few = chance > 1 - comparison.confidence and chance <= 2.0 / 2**comparison.pairs
    least = ", the least that so few pairs can give" if too_few else ""
    return f"; permutation test: p = {chance:.2g}{least}"


def verdict(comparison: Comparison) -> str:
    """One of five sentences."""
    found = said(comparison.speedup)
    match comparison.verdict:
        case "different work":
            return "No verdict: A and B do different work."
        case "faster" | "slower":
            return f"B is {found}."
        case "same":
            return f"The same within ±{percent_of(MARGIN)}: B is {found}."
    if comparison.least_seen is None:
        what = "one pair" if comparison.sessions is None else "one session a side"
        return f"No error rate can be given from {what}: B was {found} in it."
    least = percent_of(comparison.least_seen)
    return f"No evidence: B is {found}, and this run could only have seen {least} or more."


def said(interval: Interval) -> str:
    """`faster by 6.0 % [2.6, 9.6]`, or `slower by` as much."""
    return f"faster by {shown(interval)}" if interval.estimate >= 0 else f"slower by {shown(interval.turned)}"


def shown(interval: Interval) -> str:
    """`6.0 % [2.6, 9.6]`."""
    return f"{percent_of(interval.estimate)} {range_of(interval)}".rstrip()


def speedup_of(component: Component) -> str:
    """With its interval; nothing where an arm does not have it."""
    return "" if component.speedup is None else shown(component.speedup)


def verdict_of(component: Component) -> str:
    """`faster`, `slower`, or no evidence."""
    if component.name == TAKING_TURNS:
        return ""
    if not component.a_ns or not component.b_ns:
        return "only A" if component.a_ns else "only B"
    if not component.significant:
        return NO_EVIDENCE
    return "faster" if component.contribution > 0 else "slower"


_TIMES: tuple[Column[Component], ...] = (
    Column("A", 7, lambda component: time_of(component, component.a_ns)),
    Column("B", 7, lambda component: time_of(component, component.b_ns)),
    Column("saved", 7, lambda component: f"{100 * component.contribution:+.1f}%"),
)
_COLUMNS: tuple[Column[Component], ...] = (
    *_TIMES[:2],
    Column("B is faster by", 22, speedup_of),
    Column("verdict", 7, verdict_of),
    _TIMES[2],
)


def time_of(component: Component, ns: float) -> str:
    """Nothing for the rest, which is no time of its own: clocks that are read a moment apart make it less than zero."""
    return "" if component.name == TAKING_TURNS else duration(ns)


def percent_of(fraction: float) -> str:
    """`6.0 %`."""
    return f"{_percent(fraction)} %"


def range_of(interval: Interval) -> str:
    """`[2.6, 9.6]`, in percent; nothing where it is not known."""
    if interval.low is None or interval.high is None:
        return ""
    return f"[{_percent(interval.low)}, {_percent(interval.high)}]"


def _percent(fraction: float) -> str:
    """`2.6`; `3074` from where a decimal says nothing."""
    return f"{100 * fraction:.1f}" if abs(fraction) < 10 else f"{100 * fraction:.0f}"
