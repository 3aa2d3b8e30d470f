"""One frame as plain text: for logs, scripts and pipes."""

from __future__ import annotations

from rich.console import Console

from rlprof.live.frame import Frame
from rlprof.top.look import ASCII, UNICODE, Look
from rlprof.top.screen import Size, screen
from rlprof.top.view import View

WIDEST = 160
NARROWEST = 60
MOST_LINES = 60


def render(frame: Frame, console: Console) -> None:
    """The dashboard without keys or colours, as long as it needs to be."""
    look = Look(ASCII if console.options.ascii_only else UNICODE)
    size = Size(max(NARROWEST, min(console.width, WIDEST)), MOST_LINES)
    for line in screen(frame, View(), size, look, keys=False).lines:
        console.print(line.plain.rstrip(), soft_wrap=True, markup=False, highlight=False, emoji=False)
