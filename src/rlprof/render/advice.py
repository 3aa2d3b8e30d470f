"""Advice as text, for the report of a session and for traces."""

from __future__ import annotations

from collections.abc import Sequence

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.advice.check import changed_copy
from rlprof.render.layout import Layout

_COMMAND = "rlprof "


def gain_of(advice: Advice) -> str | None:
    """The upper bound of the gain; None if the advice is not about speed or the gain is unknown."""
    return f"up to {advice.most:.1f}x as fast" if advice.most >= 1.05 else None


def advice(given: Sequence[Advice], layout: Layout, heading: str = "What to change", first: int = 1) -> None:
    if not given:
        return
    layout.heading(heading)
    for number, item in enumerate(given, first):
        gain = gain_of(item)
        layout.line(f"{number}. {item.title}{f'  [{gain}]' if gain else ''}", "bold")
        layout.line(f"Do: {item.action}", indent=3)
        evidence(item, layout)


def evidence(item: Advice, layout: Layout) -> None:
    for line in item.evidence:
        layout.line(f"- {line}", indent=3)
    check(item.check, layout, indent=3)


def check(text: str, layout: Layout, indent: int = 0) -> None:
    """How to see whether a change helped: a sentence, or a command to paste."""
    if not text.startswith(_COMMAND):
        layout.line(f"Check: {text}", indent=indent)
        return
    copy = changed_copy(text)
    layout.line(f"Check: make the change in a copy, {copy}, and run" if copy else "Check: run", indent=indent)
    layout.command(text, indent + 3)
