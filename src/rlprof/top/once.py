"""One frame as plain text: for logs, scripts and pipes."""

from __future__ import annotations

import shlex

from rich.console import Console

from rlprof.live.frame import Frame
from rlprof.render.names import literal
from rlprof.top.look import ASCII, UNICODE, Look
from rlprof.top.screen import Size, screen
from rlprof.top.view import View

WIDEST = 160
NARROWEST = 60
MOST_LINES = 60


def render(frame: Frame, console: Console, given: str | None = None) -> None:
    """The dashboard without keys or colours, as long as it needs to be.

    given: the session, if it is not the default one.
    """
    look = Look(ASCII if console.options.ascii_only else UNICODE)
    size = Size(max(NARROWEST, min(console.width, WIDEST)), MOST_LINES)
    for line in screen(frame, View(), size, look, keys=False).lines:
        console.print(line.plain.rstrip(), soft_wrap=True, markup=False, highlight=False, emoji=False)
    if frame.stuck is not None:
        command = "rlprof stacks" if given is None else f"rlprof stacks {shlex.quote(given)}"
        shown = literal(f"`{command}` shows where.", look.ascii)
        console.print(shown, soft_wrap=True, markup=False, highlight=False, emoji=False)
