"""A widget that shows lines. Only lines that have changed are drawn again."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

_CONSOLE = Console(width=1_000, color_system=None, force_terminal=False, legacy_windows=False)
"""Turns text into segments. Textual has its own for the colours of the terminal."""


class Canvas(Widget):
    DEFAULT_CSS = """
    Canvas { height: 1fr; width: 1fr; }
    """

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Text] = []
        self._strips: list[Strip] = []
        self._base = Style.null()

    def show(self, lines: Sequence[Text], base: Style) -> None:
        """Show these lines, with a style for what has none."""
        old, old_strips = (self._lines, self._strips) if base == self._base else ([], [])
        self._lines, self._base = list(lines), base
        self._strips = []
        changed = []
        for number, line in enumerate(lines):
            if number < len(old) and old[number] == line:
                self._strips.append(old_strips[number])
            else:
                self._strips.append(_strip(line, base))
                changed.append(number)
        changed += range(len(lines), len(old))
        width = max(1, self.size.width)
        if len(changed) > len(lines) // 2:
            self.refresh()
        elif changed:
            self.refresh(*(Region(0, number, width, 1) for number in changed))

    @property
    def text(self) -> str:
        return "\n".join(line.plain for line in self._lines)

    def render_line(self, y: int) -> Strip:
        if y < len(self._strips):
            return self._strips[y].adjust_cell_length(self.size.width, self._base)
        return Strip.blank(self.size.width, self._base)


def _strip(line: Text, base: Style) -> Strip:
    style = base + line.style if isinstance(line.style, Style) else base
    copy = line.copy()
    copy.end = ""
    copy.style = ""  # rich leaves it out for a text without spans
    return Strip(Segment.apply_style(copy.render(_CONSOLE), style))
