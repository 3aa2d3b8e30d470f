"""The top of the HTML report: which run it was, how fast, and what to change, in the words of the text report."""

from __future__ import annotations

from dataclasses import replace

from rlprof.analysis.code import Line
from rlprof.analysis.figures import as_percent, many
from rlprof.analysis.report import Report
from rlprof.render.html.findings import finding_card
from rlprof.render.html.markup import Markup, element, join, plain_name, prose, sentence
from rlprof.render.names import short_path
from rlprof.report.answer import around, gain_text, incomplete, no_cause, origin, place, speed
from rlprof.report.html.lines import NOT_SAMPLED

_FIRST = 2
"""Findings beside the picture. The others are one click away."""
_HOTTEST = 5


def header(report: Report) -> Markup:
    """One line of origin, the verdict, and what makes the figures doubtful."""
    facts, name = report.facts, report.facts.session.name
    missing = incomplete(report)
    rest = origin(report).removeprefix(name).removeprefix(", ")
    parts = [
        element("div", element("h1", plain_name(name)), element("span", prose(rest)), class_="origin"),
        element("p", prose(missing), class_="note warn") if missing else "",
        element("p", speed(facts), class_="verdict"),
    ]
    parts.append(element("p", prose(around(facts) or ""), class_="around") if around(facts) else "")
    parts += [
        element("p", element("b", "Note: "), sentence(note.text), class_="note") for note in report.findings.notes
    ]
    return join(parts)


def findings(report: Report) -> Markup:
    """All findings, the largest gain first, each of them once. `rlprof analyze` has the scores and thresholds."""
    found = report.findings.findings
    if not found:
        return join([element("p", sentence(no_cause(report.facts)), class_="cause"), _hottest(report)])
    cards = [finding_card(item, number, gain_text(item)) for number, item in enumerate(found, 1)]
    parts = [*cards[:_FIRST]]
    if any(item.gain for item in found):
        hint = "“As fast” is what `rlprof whatif` predicts for the change, with its 95% interval."
        parts.append(element("p", sentence(hint), class_="hint"))
    if others := cards[_FIRST:]:
        parts.append(element("details", element("summary", many(len(others), "more finding")), *others, id="others"))
    return join(parts)


def _hottest(report: Report) -> Markup:
    """Without a finding: the lines that the largest operation comes from."""
    largest = report.facts.breakdown.largest.name
    lines = report.facts.code.within(largest)[:_HOTTEST]
    if not lines:
        return element("p", NOT_SAMPLED, class_="hint")
    caption = element(
        "p", "Its hottest lines, as parts of its own time (without the operations it calls):", class_="hint"
    )
    return join([caption, element("ol", *(element("li", *_line(line)) for line in lines), class_="hottest")])


def _place(line: Line) -> Markup:
    shown = place(replace(line, file=short_path(line.file)))
    return element("span", prose(shown), title=prose(place(line)))


def _line(line: Line) -> list[Markup]:
    shown = [element("b", as_percent(line.share)), Markup(" "), _place(line)]
    return [*shown, Markup(" "), element("code", prose(line.source))] if line.source else shown
