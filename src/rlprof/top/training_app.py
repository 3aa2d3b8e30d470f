"""The dashboard of a training that this process has started, with its output in a pane below."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.geometry import Size
from textual.message import Message

from rlprof.errors import RlprofError
from rlprof.live.feed import Feed
from rlprof.live.frame import Frame
from rlprof.recording.environment import announced_folders
from rlprof.run import OUTPUT
from rlprof.run.output import Output
from rlprof.run.pseudo_terminal import PseudoTerminal
from rlprof.top.app import TopApp
from rlprof.top.canvas import Canvas
from rlprof.top.drawing import Boxes, Panel, name_of
from rlprof.top.drawn import ReadFailed
from rlprof.top.emulator import Emulator
from rlprof.top.look import Look
from rlprof.top.pages import Question
from rlprof.top.screen import footer

POLL_SECONDS = 0.25
"""Time between two looks at the output and at the folder of the session."""
MOST_BYTES = 4096
"""Most output that is drawn at once. Of more, the newest part is: emulating a terminal takes a microsecond per byte."""
MOVE_SECONDS = 6.0
"""A program that exits earlier and has not trained leaves no session, so its output is kept aside so long."""
LEAST_PANE, MOST_PANE = 4, 24
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
"""What each further request to end the training sends."""


def pane_height(height: int) -> int:
    """Lines of the pane with its title, for a terminal of this height."""
    return max(LEAST_PANE, min(MOST_PANE, height * 3 // 10))


class Ended(Message):
    """The training has ended, and all of its output was read."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


class TrainingApp(TopApp):
    """It exits by itself if nothing was recorded. `code` is the exit code of the training; None while it runs."""

    CSS = TopApp.CSS + "#output { height: 8; }"

    def __init__(
        self, program: str, terminal: PseudoTerminal, output: Callable[[Callable[[int], None]], Output],
        folders: Path, interval: float = 1.0, look: Look | None = None,
    ) -> None:  # fmt: skip
        super().__init__(None, interval, look)
        self.program = program
        self.terminal = terminal
        self.folders = folders
        self.output = output(lambda code: self.tell(Ended(code)))
        self.emulator = Emulator(8, 80)
        self.code: int | None = None
        self.view = replace(self.view, runs_training=True)
        self._shown = -1
        self._found = 0.0
        self._quits = 0

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield Canvas(id="output")

    def on_mount(self) -> None:
        self._fit_pane(self.size)
        self.output.start()
        self.set_interval(POLL_SECONDS, self._poll)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self._pass_on, number)

    def on_resize(self, event: events.Resize) -> None:
        self._fit_pane(event.size)
        super().on_resize(event)

    def _fit_pane(self, size: Size) -> None:
        height = pane_height(size.height)
        self.screen_stack[0].query_one("#output").styles.height = height
        self.emulator.resize(height - 1, size.width)
        self.terminal.resize(height - 1, size.width)
        self._shown = -1
        self.call_after_refresh(self._draw_output)

    def _pass_on(self, number: int) -> None:
        """A signal for this process is meant for the training. The end of the training ends the dashboard."""
        if self.code is not None:
            self.exit()
            return
        self._quits = max(1, self._quits)
        self.terminal.send_signal(number)

    def _poll(self) -> None:
        self._draw_output()
        now = asyncio.get_running_loop().time()
        if self.feed is None:
            folders = announced_folders(self.folders)
            if folders:
                with suppress(RlprofError, OSError):
                    self.read(Feed(folders[0]))
                    self._found = now
        elif self._found and (now - self._found > MOVE_SECONDS or self._has_trained()):
            self._found = 0.0
            self.output.move(self.feed.folder)
            self._shown = -1

    def _has_trained(self) -> bool:
        return self.newest is not None and bool(self.newest.steps or self.newest.iterations)

    def _draw_output(self) -> None:
        if self.output.total == self._shown or not self.screen_stack:
            return
        self._shown = self.output.total
        new, skipped = self.output.take(max(MOST_BYTES, 2 * self.size.width * pane_height(self.size.height)))
        if skipped:
            self.emulator.forget_style()
        self.emulator.feed(new)
        canvas = self.screen_stack[0].query_one("#output", Canvas)
        canvas.show([self._pane_title(), *self.emulator.lines()], self.look.style("page"))

    def _pane_title(self) -> Text:
        look = self.look
        left = Text.assemble((look.glyphs.line * 2, look.style("frame")), (" Output ", look.style("title")))
        note = self.output.problem or (f"complete in {OUTPUT}" if self.feed is not None else "")
        shown = name_of(note, max(4, self.size.width - 16), look)
        line = look.style("frame")
        right = Text.assemble((f" {shown} " if shown else "", look.style("muted")), (look.glyphs.line * 2, line))
        gap = max(0, self.size.width - left.cell_len - right.cell_len)
        return Text.assemble(left, (look.glyphs.line * gap, look.style("frame")), right)

    def draw(self) -> None:
        if self.frame is not None:
            super().draw()
        elif self.is_running and self.screen_stack:
            canvas = self.screen_stack[0].query_one("#dashboard", Canvas)
            width, height = max(30, canvas.size.width), canvas.size.height
            boxes = Boxes(width, self.look)
            text = "Waiting for the first figures." if self.code is None else "Nothing was recorded."
            title = name_of(self.program, width - 12, self.look)
            boxes.add(Panel(title, [Text(text, self.look.style("muted"))]))
            lines = boxes.lines()
            lines += [Text()] * (height - len(lines) - 1)
            lines.append(footer(_starting(self.program), self.view, width, self.look))
            canvas.show(lines, self.look.style("page"))

    def on_read_failed(self, message: ReadFailed) -> None:
        """The session may not be complete yet. It is tried again."""

    def on_ended(self, message: Ended) -> None:
        self.code = message.code
        self._draw_output()
        if self._quits or self.feed is None or not self.feed.path.exists():
            self.exit()
            return
        self.change(message=f"{ended_text(message.code)} q leaves the dashboard.", is_error=message.code != 0)

    def action_leave(self) -> None:
        if self.code is not None:
            self.exit()
            return
        if isinstance(self.screen, Question):  # ctrl+q, which no screen can bind for itself
            self.screen.dismiss(True)
            return
        if self._quits:
            self._end_training()
            return
        text = (
            "Quitting ends the training: its terminal is this dashboard, so it cannot go on in the background. "
            "End it now?"
        )
        self.push_screen(Question(f"{self.program} is running", text, self.look), self._answered)

    def _answered(self, ends: bool | None) -> None:
        if ends:
            self._end_training()

    def _end_training(self) -> None:
        """First as Ctrl-C does, so that the training can clean up."""
        if self.code is not None:
            self.exit()
            return
        number = _ENDINGS[min(self._quits, len(_ENDINGS) - 1)]
        self._quits += 1
        if number == signal.SIGINT:
            self.terminal.interrupt()
        else:
            self.terminal.send_signal(number)
        following = _ENDINGS[min(self._quits, len(_ENDINGS) - 1)].name
        self.change(message=f"Sent {number.name} to the training and waiting for its end. q sends {following}.")

    def action_interrupt(self) -> None:
        """Ctrl-C is for the training, as in any terminal."""
        if self.code is None:
            self.terminal.interrupt()
        else:
            self.exit()


def _starting(program: str) -> Frame:
    return Frame(Path(), program, "running", started=0.0, written=0.0, age_s=0.0, wall_s=0.0)


def ended_text(code: int) -> str:
    """How the training ended, in one sentence."""
    if code < 0:
        with suppress(ValueError):
            return f"The training was ended by {signal.Signals(-code).name}."
    return "The training has finished." if code == 0 else f"The training ended with exit code {abs(code)}."
