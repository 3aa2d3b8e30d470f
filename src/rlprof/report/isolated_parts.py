"""Expected speed as text: the parts alone, what they allow together, and what was reached."""

from __future__ import annotations

from functools import partial

from rich.console import Console

from rlprof.analysis.figures import as_percent, rate
from rlprof.analysis.isolated_parts import Alone, PartAlone
from rlprof.render.layout import Column, Layout, plain

_COLUMNS: tuple[Column[PartAlone], ...] = (
    Column("steps/s alone", 13, lambda part: rate(part.steps_per_second)),
    Column("half of the rounds", 18, lambda part: f"{rate(part.slowest)} to {rate(part.fastest)}", 1),
    Column("share", 6, lambda part: as_percent(part.share)),
)


def to_text(alone: Alone, width: int = 100) -> str:
    return plain(partial(render, alone), width)


def render(alone: Alone, console: Console) -> None:
    """The table, and the one sentence that follows from it."""
    layout = Layout(console)
    layout.heading("Expected speed")
    layout.table("part", [part.name for part in alone.parts], alone.parts, _COLUMNS)
    layout.line(
        f"One after the other they allow {rate(alone.expected)} steps/s; "
        f"the training did {rate(alone.reached)}: {as_percent(alone.ratio)} of it."
    )
    if alone.poor:
        layout.line("Less than half: something is set up wrongly, or something is slow that is none of its parts.")
