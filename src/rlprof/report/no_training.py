"""The end of a run about which there is nothing else to say: it crashed, or no training was seen in it."""

from __future__ import annotations

from rlprof.analysis.figures import duration
from rlprof.analysis.report import Report
from rlprof.report.answer import trained

_ENDED = ("finished", "ended", "os._exit(0)")
_STOPPED = ("KeyboardInterrupt", "SIG", "signal")
"""Beginnings of how a run ended that somebody stopped. That is no crash."""


def no_training(report: Report) -> str | None:
    """One sentence in place of a verdict; None if there is something to say."""
    facts = report.facts
    what = facts.ended.splitlines()[0][:200] if facts.ended else ""
    after = f"after {duration(facts.breakdown.wall_ns)}"
    if facts.ended not in _ENDED and not facts.ended.startswith(_STOPPED):
        return f"The program failed {after} ({what})."
    if trained(facts):
        return None
    return f"No training was seen in this program, which ended {after}."
