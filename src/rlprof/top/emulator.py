"""What a terminal would show of a program's output, as lines of text."""

from __future__ import annotations

from typing import Any

import pyte
from rich.style import Style
from rich.text import Text

_COLOURS = {"brown": "yellow", "brightbrown": "bright_yellow"}


class _Screen(pyte.Screen):
    """A line feed also returns to the first column, because the pseudo-terminal adds no carriage return."""

    def linefeed(self) -> None:
        super().linefeed()
        self.carriage_return()

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Fewer lines keep those around the cursor: pyte keeps the last ones, even if they are empty."""
        lines = lines or self.lines
        if lines < self.lines:
            surplus = max(0, self.cursor.y - lines + 1)
            for place in range(lines):
                self.buffer[place] = self.buffer[place + surplus]
            for place in range(lines, self.lines):
                self.buffer.pop(place, None)
            self.cursor.y -= surplus
            self.lines = lines
            self.dirty.update(range(lines))
        super().resize(lines, columns)
        self.cursor.x = min(self.cursor.x, self.columns)


class Emulator:
    """A terminal of a given size. Bytes that it does not understand are ignored."""

    def __init__(self, rows: int, columns: int) -> None:
        self._screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lines: dict[int, Text] = {}

    def feed(self, output: bytes) -> None:
        try:
            self._stream.feed(output)
        except Exception:  # pyte raises various errors for sequences that no terminal knows
            self._stream = pyte.ByteStream(self._screen)

    def forget_style(self) -> None:
        """Part of the output was skipped: a colour that was on may be off, and the cursor anywhere."""
        self._stream = pyte.ByteStream(self._screen)
        self.feed(b"\x1b[0m\r")

    def resize(self, rows: int, columns: int) -> None:
        self._screen.resize(max(1, rows), max(1, columns))
        self._lines.clear()
        self._screen.dirty.update(range(self._screen.lines))

    def lines(self) -> list[Text]:
        for place in self._screen.dirty:
            self._lines.pop(place, None)
        self._screen.dirty.clear()
        for place in range(self._screen.lines):
            if place not in self._lines:
                self._lines[place] = self._line(place)
        return [self._lines[place] for place in range(self._screen.lines)]

    def written(self) -> list[Text]:
        """The lines up to the last one that is not empty."""
        lines = self.lines()
        while lines and not lines[-1].plain.strip():
            lines.pop()
        return lines

    def _line(self, place: int) -> Text:
        row = self._screen.buffer[place]
        line = Text(end="")
        run, looks = "", None
        for column in range(self._screen.columns):
            char = row[column]
            if char[1:] != looks:
                if run:
                    line.append(run, _style(looks))
                run, looks = "", char[1:]
            run += char.data
        if run:
            line.append(run, _style(looks))
        line.rstrip()
        return line


def _style(looks: Any) -> Style:
    """Style of a character of pyte: (fg, bg, bold, italics, underscore, strikethrough, reverse, blink)."""
    if looks is None:
        return Style.null()
    fg, bg, bold, italic, underline, strike, reverse, _ = looks
    return Style(
        color=_colour(fg), bgcolor=_colour(bg), bold=bold or None, italic=italic or None, underline=underline or None,
        strike=strike or None, reverse=reverse or None,
    )  # fmt: skip


def _colour(name: str) -> str | None:
    """`red` and `ff0000` as rich writes them."""
    if name == "default":
        return None
    if len(name) == 6 and all(char in "0123456789abcdefABCDEF" for char in name):
        return f"#{name}"
    name = _COLOURS.get(name, name)
    return name.replace("bright", "bright_", 1) if name.startswith("bright") and "_" not in name else name
