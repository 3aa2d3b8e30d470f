"""The report as Markdown, for an issue or a pull request: speed, findings, call tree, categories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rlprof.analysis.figures import count, duration, if_known, percent
from rlprof.analysis.report import Report
from rlprof.render.names import literal
from rlprof.report.answer import around, gain_text, incomplete, no_cause, origin, speed

MOST_ROWS = 30


def to_markdown(report: Report) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterable[str]:
    facts = report.facts
    whole = facts.breakdown
    yield from (f"# {_escaped(facts.session.name)}", "", _escaped(origin(report)), "")
    if missing := incomplete(report):
        yield from (f"**{_escaped(missing)}**", "")
    yield f"**{_escaped(speed(facts))}** {_escaped(around(facts) or '')}".rstrip()
    if not whole.training_ns:
        return
    yield from (f"\nNote: {_escaped(note.text)}" for note in report.findings.notes)
    yield from ("", "## What to change", "")
    for item in report.findings.findings:
        gain = gain_text(item)
        evidence = _with_code(" ".join(item.evidence))
        yield f"1. **{_escaped(item.cause)}** {_with_code(item.change)}{f' Gain: {gain}.' if gain else ''} {evidence}"
    if not report.findings.findings:
        yield _escaped(no_cause(facts))
    yield from ("", "## Where the training time went")
    yield ""
    rows = [
        (
            "\u2003" * row.depth + _escaped(row.operation),
            percent(row.share),
            duration(row.subtree_ledger_ns),
            count(row.calls) if row.calls else "",
            if_known(duration, row.mean_ns),
            if_known(duration, row.p95_ns),
        )
        for row in (*whole.rows[: min(MOST_ROWS, len(whole.rows) - 2)], *whole.rows[-2:])
    ]
    yield from _table(("operation", "share", "time", "calls", "mean", "p95"), rows)
    yield from ("", "## Categories", "")
    portions = [(_escaped(item.name), percent(item.share), duration(item.ledger_ns)) for item in whole.categories]
    yield from _table(("category", "share", "time"), portions)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|---|{'---:|' * (len(header) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _with_code(text: str) -> str:
    """Escape a text, but keep what stands in backticks as code: nothing in it is HTML or Markdown."""
    parts = re.split(r"(`[^`\n]+`)", literal(text))
    return "".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    """Escape a text, so that it is neither HTML nor Markdown nor the end of a table cell."""
    # Underscores inside a word need no escape, and most operations have one.
    return re.sub(r"([\\`*{}\[\]<>#|~&]|\b_|_\b|(?<=_)_)", r"\\\1", literal(text))
