"""Colours and characters of the dashboard. Nothing is told by a colour alone, so each can be left out."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import cache

from rich.style import Style


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Characters for boxes, bars and curves."""

    corners: str = "╭╮╰╯"
    line: str = "─"
    side: str = "│"
    joints: str = "├┤┬┴┼"
    bar: str = "━"
    half: str = "╸"
    tick: str = "┃"
    track: str = "─"
    curve: str = "▁▂▃▄▅▆▇█"
    block: str = "█"
    parts: str = "▏▎▍▌▋▊▉"
    """The left part of a block, from one eighth to seven eighths."""
    cursor: str = "▸"
    ellipsis: str = "…"
    dot: str = "·"
    running: str = "●"
    ended: str = "○"
    keys: tuple[str, ...] = ("←→", "↑↓", "⏎")


UNICODE = Glyphs()
ASCII = Glyphs(
    corners="++++", line="-", side="|", joints="+++++", bar="=", half="", tick="|", track=".", curve="._-=+*#@",
    block="#", parts="", cursor=">", ellipsis="...", dot="|", running="*", ended="o",
    keys=("arrows", "up/down", "enter"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours for one background. Those of the categories are the ones of the HTML report."""

    page: str
    ink: str
    muted: str
    frame: str
    accent: str
    good: str
    warn: str
    alarm_ink: str
    alarm: str
    raised: str
    curve: str
    tick: str
    categories: dict[str, str] = field(default_factory=dict)


DARK = Palette(
    page="#0f1216", ink="#e8ebf0", muted="#8d97a5", frame="#3f4957", accent="#7cbcff", good="#5fd7a0", warn="#ffb877",
    alarm_ink="#ffffff", alarm="#a33a2a", raised="#26303c",
    curve="#44729f", tick="#c3cad4",
    categories={
        "environment": "#1fb88a", "rendering": "#eeaf2b", "policy": "#4a9fe0", "teacher": "#7cc8f2",
        "transfer": "#f0e442", "storage": "#d68fb7", "learning": "#e4712a", "communication": "#c3a5f0",
        "system": "#a88860", "other": "#8d97a5", "unattributed": "#6b7686", "rlprof": "#6b7686",
    },
)  # fmt: skip
LIGHT = Palette(
    page="#ffffff", ink="#1a1d23", muted="#5b6470", frame="#b4bcc8", accent="#0b5cad", good="#0a6b42", warn="#8a3a00",
    alarm_ink="#ffffff", alarm="#b3321f", raised="#dfe8f2",
    curve="#7ba7d4", tick="#3b434f",
    categories={
        "environment": "#008a64", "rendering": "#b97f00", "policy": "#0072b2", "teacher": "#2f8fc4",
        "transfer": "#8f8500", "storage": "#b3568a", "learning": "#d55e00", "communication": "#7a52c0",
        "system": "#8a6d4b", "other": "#6b7686", "unattributed": "#8791a0", "rlprof": "#8791a0",
    },
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    glyphs: Glyphs = UNICODE
    palette: Palette | None = None
    """None for plain text."""

    @property
    def ascii(self) -> bool:
        return self.glyphs is ASCII

    def style(self, name: str) -> Style:
        """Style of `ink`, `muted`, `title`, a category and so on."""
        return _style(name, self.palette is DARK) if self.palette is not None else Style.null()


@cache
def _style(name: str, is_dark: bool) -> Style:
    palette = DARK if is_dark else LIGHT
    if name == "title":
        return Style(color=palette.accent, bold=True)
    if name == "figure":
        return Style(color=palette.ink, bold=True)
    if name == "alarm":
        return Style(color=palette.alarm_ink, bgcolor=palette.alarm, bold=True)
    if name == "selected":
        return Style(bgcolor=palette.raised, bold=True)
    if name == "key":
        return Style(color=palette.accent, bold=True)
    if name == "page":
        return Style(color=palette.ink, bgcolor=palette.page)
    if name in ("ink", "muted", "frame", "accent", "good", "warn", "curve", "tick"):
        return Style(color=getattr(palette, name))
    return Style(color=palette.categories.get(name, palette.categories["other"]))


def glyphs_for(encoding: str | None) -> Glyphs:
    """The characters that an encoding has."""
    try:
        "━╸┃▁█…●╭▸".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def palette_for_terminal() -> Palette:
    """Light if the terminal says that its background is, else dark."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT if background in ("7", "15") else DARK


def terminal_look() -> Look:
    """For the terminal on stderr, where textual draws."""
    is_dumb = os.environ.get("TERM") == "dumb"
    return Look(ASCII if is_dumb else glyphs_for(getattr(sys.stderr, "encoding", None)), palette_for_terminal())
