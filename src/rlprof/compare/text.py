"""A comparison as text: the verdict, what each component contributes, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

import msgspec
from rich.console import Console

from rlprof.analysis.comparison import BETWEEN, MARGIN, Comparison, Component
from rlprof.analysis.figures import duration, many, rate
from rlprof.analysis.inference import Interval, pairs_to_show
from rlprof.render.intervals import faster_or_slower, percent_of, range_in_words, range_of, shown
from rlprof.render.layout import Column, Layout, as_text

NO_EVIDENCE = "~"
CHANCE = 0.05
"""With few pairs or sessions, all of them agree by chance alone in more cases than this."""
ENOUGH, ENOUGH_SESSIONS = 6, 4
"""Fewest pairs, and fewest sessions per side, that agree by chance in fewer cases."""
MARGIN_SHOWN = 0.05
"""The difference for which the number of pairs is computed that it would take."""
SCHEMA_VERSION = 1


def render(comparison: Comparison, console: Console) -> None:
    layout = Layout(console)
    layout.line(verdict(comparison), "bold")
    layout.line(f"A: {comparison.a}")
    layout.line(f"B: {comparison.b}")
    unit = "step" if comparison.per_step else "iteration"
    a, b = (rate(1e9 / ns) for ns in (comparison.a_ns, comparison.b_ns))
    layout.line(f"{unit.capitalize()}s per second: {a} in A, {b} in B.")
    if comparison.cpu is not None and not comparison.withheld:
        layout.line(by_cpu_time(comparison.cpu))
    for note in notes(comparison):
        layout.line(note, "bold")
    layout.heading(f"Time per {unit}, by component")
    names = [component.name for component in comparison.components]
    layout.table("component", names, comparison.components, _COLUMNS[:2] if comparison.withheld else _COLUMNS)
    layout.line(legend(comparison))
    layout.line(basis(comparison))
    if comparison.changes:
        layout.heading("What differs between A and B")
        for change in comparison.changes:
            layout.line(change, indent=2)


to_text = as_text(render)


def to_json(comparison: Comparison) -> str:
    """All fields, with the verdict as a word and as a sentence."""
    first = {"schema_version": SCHEMA_VERSION, "verdict": comparison.verdict, "sentence": verdict(comparison)}
    return msgspec.json.format(msgspec.json.encode({**first, **asdict(comparison)})).decode() + "\n"


def notes(comparison: Comparison) -> Iterator[str]:
    """Warnings that the reader must know before trusting the result."""
    if comparison.work is not None and not comparison.withheld:
        yield f"The work differs: {comparison.work}. The verdict is about time per {unit_of(comparison)} all the same."
    if comparison.sizes is not None and not (comparison.work and comparison.sizes in comparison.work):
        yield f"Iterations differ in size: {comparison.sizes}. Times and speeds are per {unit_of(comparison)}."
    if (needed := what_it_takes(comparison)) is not None:
        yield needed
    if comparison.interrupted:
        yield "Interrupted: this is the result so far."
    if comparison.drift is not None and not comparison.steady:
        drift = shown(comparison.drift)
        yield f"Not steady: the difference changed by {drift} between the start and the end of a pair."


def unit_of(comparison: Comparison) -> str:
    return "environment step" if comparison.per_step else "training iteration"


def what_it_takes(comparison: Comparison) -> str | None:
    """What to do if the comparison could not decide."""
    if comparison.verdict != "unknown":
        return None
    if comparison.sessions is not None:
        few = min(comparison.sessions) < ENOUGH_SESSIONS
        return f"Record at least {ENOUGH_SESSIONS} sessions per side." if few else None
    if comparison.least_seen is None:
        return f"Run at least {ENOUGH} pairs (--pairs, --max-time)."
    needed = pairs_to_show(MARGIN_SHOWN, comparison.logs, 1 - comparison.confidence)
    number = "more than 1,000" if needed is None else f"about {max(needed, ENOUGH)}"
    would = f"To detect a difference of {percent_of(MARGIN_SHOWN)} in this noise, run {number} pairs"
    return f"{caution(comparison)} {would} (--pairs, --max-time).".lstrip()


def caution(comparison: Comparison) -> str:
    """Why so few pairs or sessions prove little. Empty if there are enough."""
    same = comparison.verdict == "same"
    if comparison.sessions is None:
        return few_pairs(comparison.pairs, same)
    a, b = comparison.sessions
    return _few(f"{many(a, 'session')} of A and {b} of B", 2 / math.comb(a + b, a), "session", same)


def few_pairs(pairs: int, same: bool = False) -> str:
    return _few(many(pairs, "pair"), 2 / 2**pairs, "pair", same)


def _few(number: str, chance: float, what: str, same: bool) -> str:
    """`chance` is how often one arm wins all of them if both are equally fast."""
    if chance <= CHANCE:
        return ""
    if same:
        return f"Only {number}: so few can be close together by chance."
    often = f"in {percent_of(chance)} of cases"
    return f"Only {number}: if A and B were equally fast, one of them would still win every {what} {often}."


def remedy(comparison: Comparison) -> str:
    """What to do where the verdict is withheld."""
    step = ", or per environment step with --per step" if comparison.per_step else ""
    return f"Compare per training iteration with --per iteration{step}."


def legend(comparison: Comparison) -> str:
    """How to read the table of components."""
    unit = "step" if comparison.per_step else "iteration"
    if comparison.withheld:
        return "A and B do different work, and these times include that difference."
    saved = (
        f'"Saved" is the part of A\'s time per {unit} that B saves in a component. All parts sum to the whole saving.'
    )
    evidence = f'"{NO_EVIDENCE}" means no evidence that the component differs, with a correction for testing several.'
    typical = (
        ' "B is faster by" leaves out unusually slow and fast iterations where this makes the figure more precise.'
    )
    return f"{evidence}{typical if comparison.pairs else ''} {saved}"


def basis(comparison: Comparison) -> str:
    """What the figures are computed from."""
    known = comparison.speedup.low is not None
    intervals = f", with {100 * comparison.confidence:g}% confidence intervals" if known else ""
    if comparison.sessions is not None:
        a, b = (many(number, "session") for number in comparison.sessions)
        stronger = "Interleaved processes give a stronger answer: rlprof compare 'run ...' 'run ...'."
        return f"Computed from {a} of A and {b} of B, recorded separately{intervals}. {stronger}"
    computed = f"Computed from {many(comparison.pairs, 'pair')} of interleaved processes{intervals}."
    chance = comparison.permutation_p
    if chance is None:
        return computed
    too_few = chance > 1 - comparison.confidence and chance <= 2.0 / 2**comparison.pairs
    least = ", the smallest value that so few pairs can give" if too_few else ""
    return f"{computed} Permutation test: p = {chance:.2g}{least}."


def verdict(comparison: Comparison) -> str:
    """One of five sentences. It names the unit if the user chose it."""
    if comparison.withheld:
        return f"No verdict: A and B do different work: {comparison.work}. {remedy(comparison)}"
    sentence = _sentence(comparison)
    return f"Per {unit_of(comparison)}: {sentence}" if comparison.unit_chosen else sentence


def _sentence(comparison: Comparison) -> str:
    found = faster_or_slower(comparison.speedup)
    match comparison.verdict:
        case "faster" | "slower":
            return f"B is {found}. {caution(comparison)}".rstrip()
        case "same":
            return f"The same within ±{percent_of(MARGIN)}: B is {found}. {caution(comparison)}".rstrip()
    if comparison.least_seen is None:
        return f"No verdict: {no_interval(comparison)}. B was {found}."
    least = percent_of(comparison.least_seen)
    between = range_in_words(comparison.speedup)
    reliably = f"In this noise, only differences of {least} or more are detected reliably."
    return f"No evidence of a difference: B is {between}. {reliably}"


def no_interval(comparison: Comparison) -> str:
    """Why there is no interval: `2 pairs are too few for an interval`."""
    if comparison.sessions is not None:
        return "a side with a single session has no error rate"
    if comparison.pairs == 1:
        return "a single pair gives no error rate"
    return f"{many(comparison.pairs, 'pair')} are too few for an interval"


def by_cpu_time(interval: Interval) -> str:
    """Without an estimate if the interval includes no difference."""
    known = interval.low is None or interval.beyond_zero
    return f"By CPU time, B is {faster_or_slower(interval) if known else range_in_words(interval)}."


def speedup_of(component: Component) -> str:
    """Speedup with its interval; the interval alone if there is no evidence; empty if an arm lacks the component."""
    if component.speedup is None:
        return ""
    alone = verdict_of(component) == NO_EVIDENCE and component.speedup.low is not None
    return range_of(component.speedup) if alone else shown(component.speedup)


def verdict_of(component: Component) -> str:
    """`faster`, `slower`, `only A`, `only B`, or no evidence."""
    if component.name == BETWEEN:
        return ""
    if not component.a_ns or not component.b_ns:
        return "only A" if component.a_ns else "only B"
    if not component.significant:
        return NO_EVIDENCE
    return "faster" if component.contribution > 0 else "slower"


_COLUMNS: tuple[Column[Component], ...] = (
    Column("A", 7, lambda component: time_of(component, component.a_ns), dispensable=1),
    Column("B", 7, lambda component: time_of(component, component.b_ns), dispensable=1),
    Column("B is faster by", 22, speedup_of),
    Column("verdict", 7, verdict_of, dispensable=2),
    Column("saved", 7, lambda component: f"{100 * component.contribution:+.1f}%", dispensable=3),
)


def time_of(component: Component, ns: float) -> str:
    """Empty for the rest between the components. It can be negative, because two clocks are not read at once."""
    return "" if component.name == BETWEEN else duration(ns)
