"""The components of a training as text, with bars."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlprof.analysis.components import ComponentLine, Components
from rlprof.analysis.figures import duration, percent
from rlprof.render.layout import GAP, WIDEST, as_text

_FIGURES_WIDTH = 2 * GAP + 7 + 6


def render(components: Components, console: Console) -> None:
    """One line per component, its parts below it. The outermost lines sum to the training time; what lies outside of
    the training follows without a share."""
    console.print(Text(f"Component breakdown of {duration(components.training_ns)} of training", style="bold"))
    ascii_only = console.options.ascii_only
    names = [_name(line) for line in components.lines]
    longest = max(map(len, [*names, *(part.name for part in components.outside)]))
    room = min(console.width, WIDEST) - _FIGURES_WIDTH - longest - GAP
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, GAP, 0, 0))
    table.add_column(no_wrap=True, min_width=min(longest, 40))
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, justify="right")
    bar_width = max(0, min(40, room))
    full = max(line.share for line in components.lines)
    for name, line in zip(names, components.lines):
        length = round(bar_width * line.share / full) if full else 0
        bar = Text(("#" if ascii_only else "█") * length, style="cyan" if line.depth == 0 else "dim cyan")
        style = "bold" if line.depth == 0 else ""
        table.add_row(Text(name, style=style), Text(duration(line.ledger_ns)), Text(percent(line.share)), bar)
    for part in components.outside:
        table.add_row(Text(part.name), Text(duration(part.ns)), Text(), Text("not training", style="dim"))
    console.print(table)


to_text = as_text(render)


def _name(line: ComponentLine) -> str:
    return f"{'  ' * line.depth}{'- ' if line.depth else ''}{line.title}"
