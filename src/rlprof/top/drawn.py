"""The part of the dashboard that reads and draws. It reads on other threads, and draws only lines that have changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from textual import events
from textual.app import App, ComposeResult
from textual.message import Message
from textual.theme import Theme
from textual.widgets import Input

from rlprof.live.feed import Feed
from rlprof.live.frame import Frame
from rlprof.top.actions import Actions, withdraw_requests
from rlprof.top.canvas import Canvas
from rlprof.top.look import DARK, LIGHT, Look, Palette, terminal_look
from rlprof.top.reading import Reading
from rlprof.top.screen import Screen, Size, screen
from rlprof.top.view import View

Result = TypeVar("Result")


def _theme(name: str, palette: Palette, dark: bool) -> Theme:
    return Theme(
        name=name, primary=palette.accent, warning=palette.warn, error=palette.alarm, success=palette.good,
        foreground=palette.ink, background=palette.page, surface=palette.page, panel=palette.raised, dark=dark,
    )  # fmt: skip


class FrameRead(Message):
    """A reading thread has a new frame."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.frame = frame


class ReadFailed(Message):
    """A reading thread has no frame, for this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class Finished(Message):
    """An action has ended: this is called on the thread of the dashboard."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.then = then


class DrawnApp(App[str]):
    """Its result is the reason why there was nothing to show; None if all is well."""

    TITLE = "rlprof top"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    CSS = """
    Screen { layout: vertical; background: $background; }
    ModalScreen { background: $background 60%; }
    #filter { display: none; height: 1; border: none; padding: 0 1; background: $panel; color: $foreground; }
    #filter.open { display: block; }
    """

    def __init__(self, feed: Feed | None, interval: float = 1.0, look: Look | None = None) -> None:
        super().__init__()
        self.look = look or terminal_look()
        self.register_theme(_theme("rlprof-dark", DARK, dark=True))
        self.register_theme(_theme("rlprof-light", LIGHT, dark=False))
        self.theme = "rlprof-light" if self.look.palette is LIGHT else "rlprof-dark"
        self.animation_level = "none"
        self.feed = feed
        self.interval = interval
        self.frame: Frame | None = None
        self.newest: Frame | None = None
        """The same, unless the dashboard is paused."""
        self.view = View()
        self.drawn = Screen([], ())
        self.actions = Actions()
        self.reading: Reading | None = None

    def compose(self) -> ComposeResult:
        yield Canvas(id="dashboard")
        yield Input(placeholder="part of a name", id="filter", select_on_focus=False)

    def on_mount(self) -> None:
        if self.feed is not None:
            self.read(self.feed)

    def read(self, feed: Feed) -> None:
        """Begin to read a session."""
        self.feed = feed
        self.reading = Reading(
            feed,
            self.interval,
            lambda frame: self.tell(FrameRead(frame)),
            lambda reason: self.tell(ReadFailed(reason)),
        )
        self.reading.start()

    def tell(self, message: Message) -> None:
        """Post a message from another thread. Does nothing once the dashboard has ended."""
        if self.is_running:
            self.post_message(message)

    def finish(self) -> None:
        """Stop the threads, after the terminal was restored."""
        if self.reading is not None:
            self.reading.stop()
        if self.feed is not None:
            withdraw_requests(self.feed.folder)

    def on_frame_read(self, message: FrameRead) -> None:
        self.newest = message.frame
        if not self.view.paused or self.frame is None:
            self.frame = self.newest
            self.draw()
        self.frame_arrived(self.newest)

    def on_read_failed(self, message: ReadFailed) -> None:
        if self.frame is None:
            self.exit(message.reason)

    def frame_arrived(self, frame: Frame) -> None:
        """Called with each new frame, also while the dashboard is paused."""

    def on_finished(self, message: Finished) -> None:
        message.then()

    def on_resize(self, _event: events.Resize) -> None:
        self.call_after_refresh(self.draw)

    def draw(self) -> None:
        """Draw the newest frame. Costs a few milliseconds at any size of the session."""
        if not self.is_running or not self.screen_stack:
            return
        canvas = self.screen_stack[0].query_one("#dashboard", Canvas)
        size = canvas.size
        if self.frame is None or not size.width or not size.height:
            return
        self.drawn = screen(self.frame, self.view, Size(size.width, size.height), self.look)
        canvas.show(self.drawn.lines, self.look.style("page"))

    def change(self, **settings: Any) -> None:
        """Change what the user sees."""
        view = replace(self.view, **settings)
        if view != self.view:
            self.view = view
            self.draw()

    def say(self, message: str, is_error: bool = False) -> None:
        """Show a sentence below the dashboard."""
        first = message.partition(" ")[0]
        is_word = first.isalpha() and first.islower()  # and not a path or a name
        shown = first.capitalize() + message[len(first) :] if is_word else message
        self.change(message=shown if shown.endswith(".") else f"{shown}.", is_error=is_error)

    def begin(self, kind: str, action: Callable[[], Result], done: Callable[[Result], None]) -> bool:
        """Start an action on another thread. Its result comes back on this one. False if one of its kind is running."""

        def failed(reason: str) -> None:
            self.tell(Finished(lambda: self.say(reason, is_error=True)))

        return self.actions.start(kind, action, lambda result: self.tell(Finished(lambda: done(result))), failed)
