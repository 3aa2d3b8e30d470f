"""The report as Markdown, for an issue or a pull request: headline, advice, call tree, categories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rlprof.analysis.figures import count, duration, if_known, many, percent, rate
from rlprof.analysis.report import Report
from rlprof.render.advice import gain_of
from rlprof.render.names import literal
from rlprof.report.headline import NOT_RECORDED, around_training, first_try, incomplete, largest_share, origin

MOST_ROWS = 30


def to_markdown(report: Report) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterable[str]:
    facts = report.facts
    whole = facts.breakdown
    yield from (f"# {_escaped(facts.session.name)}", "", _escaped(origin(report)), "")
    if missing := incomplete(report):
        yield from (f"**{_escaped(missing)}**", "")
    if not whole.wall_ns:
        yield NOT_RECORDED
        return
    speed = facts.progress.steps_per_second
    steps = "" if speed is None else f"**{rate(speed)} steps/s**, "
    before = around_training(facts.progress)
    yield (
        f"{steps}{duration(facts.progress.training_ns)} in {many(whole.iterations, 'iteration')}{before}. "
        f"Largest account: **{_escaped(whole.largest.name)}**, {largest_share(whole)}."
    )
    if report.findings.advice:
        yield from ("", "## What to change", "")
        for item in report.findings.advice:
            gain = f" ({gain_of(item)})" if gain_of(item) else ""
            evidence = _escaped(" ".join(item.evidence))
            yield f"1. **{_escaped(item.action)}**{gain} {_escaped(item.title)} {evidence}"
        yield from ("", "## Where the time went")
    else:
        yield _escaped(first_try(report).sentence)
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


def _escaped(text: str) -> str:
    """Escape a text, so that it is neither HTML nor Markdown nor the end of a table cell."""
    # Underscores inside a word need no escape, and most operations have one.
    return re.sub(r"([\\`*{}\[\]<>#|~&]|\b_|_\b|(?<=_)_)", r"\\\1", literal(text))
