"""Advice as text, for the report of a session and for traces."""

from __future__ import annotations

from collections.abc import Sequence

from rlprof.analysis.advice.advice import Advice
from rlprof.render.layout import Layout


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
    layout.line(f"Check: {item.check}", indent=3)
