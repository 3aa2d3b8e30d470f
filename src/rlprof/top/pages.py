"""Pages over the dashboard: text that scrolls, and questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Static

from rlprof.top.canvas import Canvas
from rlprof.top.drawing import wrapped
from rlprof.top.look import Look

Lines = Callable[[int, Look], list[Text]]
"""The content of a page for a width."""


class TextPage(ModalScreen[None]):
    """Text in a frame over the dashboard. Arrow keys scroll it, and escape closes it."""

    CSS = """
    TextPage { align: center middle; }
    TextPage #frame {
        width: 100%; height: 100%; max-width: 112; padding: 0 1;
        border: round $primary; background: $background;
        border-title-color: $primary; border-title-style: bold; border-subtitle-color: $text-muted;
        scrollbar-size-vertical: 1;
    }
    TextPage.ascii #frame { border: ascii $primary; }
    TextPage #text { height: auto; width: 100%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark", "app.pop_screen", "Close"),
        Binding("ctrl+c", "app.interrupt", "Interrupt", priority=True),
    ]

    def __init__(self, title: str, lines: Lines, look: Look) -> None:
        super().__init__()
        self._title, self._text_of, self._look = title, lines, look
        self.set_class(look.ascii, "ascii")

    def compose(self) -> ComposeResult:
        frame = VerticalScroll(Canvas(id="text"), id="frame")
        frame.border_title = Text(self._title).markup
        frame.border_subtitle = "esc closes"
        yield frame

    def on_mount(self) -> None:
        self.query_one("#frame").focus()
        self._draw()

    def on_resize(self, _event: Resize) -> None:
        self._draw()

    def replace(self, title: str, lines: Lines) -> None:
        """Show another text."""
        self._title, self._text_of = title, lines
        self.query_one("#frame").border_title = Text(title).markup
        self._draw()

    def _draw(self) -> None:
        width = max(20, min(112, self.size.width) - 5)
        lines = self._text_of(width, self._look)
        canvas = self.query_one("#text", Canvas)
        canvas.styles.height = max(1, len(lines))
        canvas.show(lines, self._look.style("page"))


class Question(ModalScreen[bool]):
    """A question that y answers with yes, as the key that asked it does, and n or escape with no."""

    CSS = """
    Question { align: center middle; }
    Question #question {
        width: auto; max-width: 90%; height: auto; padding: 1 2; border: round $warning; background: $background;
        border-title-color: $warning;
    }
    Question.ascii #question { border: ascii $warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,q", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
        Binding("ctrl+c", "app.interrupt", "Interrupt", priority=True),
    ]

    def __init__(self, title: str, text: str, look: Look) -> None:
        super().__init__()
        self._title, self._text, self._look = title, text, look
        self.set_class(look.ascii, "ascii")

    def compose(self) -> ComposeResult:
        lines = wrapped(self._text, max(20, min(64, self.app.size.width - 12)), 8, self._look)
        shown = Static(Text("\n".join([*lines, "", "y or q yes   n no"])), id="question")
        shown.border_title = Text(self._title).markup
        yield shown

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
