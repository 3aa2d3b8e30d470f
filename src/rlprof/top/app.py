"""The dashboard as a Textual application: what each key does."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from rlprof.analysis.figures import many
from rlprof.live.frame import Frame, PastIteration
from rlprof.live.stacks_text import Stacks
from rlprof.top.actions import STEPS, capture_trace, write_report
from rlprof.top.drawn import DrawnApp
from rlprof.top.help import help_lines
from rlprof.top.look import DARK, LIGHT, Look
from rlprof.top.operation import operation_lines
from rlprof.top.pages import TextPage
from rlprof.top.stacks import ask_for_stacks, stack_lines
from rlprof.top.view import ORDERS, moved, operation_of


class TopApp(DrawnApp):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "Quit"),
        Binding("ctrl+c", "interrupt", "Interrupt", priority=True),
        Binding("question_mark", "help", "Help"),
        Binding("space", "pause", "Pause"),
        Binding("o", "order", "Order"),
        Binding("slash", "filter", "Filter"),
        Binding("up", "move(-1)", "Up"),
        Binding("down", "move(1)", "Down"),
        Binding("left", "iterate(1)", "Earlier"),
        Binding("right", "iterate(-1)", "Later"),
        Binding("enter", "open", "Open"),
        Binding("escape", "reset", "Present"),
        Binding("t", "trace", "Trace"),
        Binding("s", "stacks", "Stacks"),
        Binding("r", "report", "Report"),
        Binding("d", "colours", "Dark or light"),
    ]

    _wanted_back = 0
    _asked_for_stacks = False

    def action_leave(self) -> None:
        self.exit()

    async def action_quit(self) -> None:
        """Ctrl-Q, which textual binds for itself."""
        self.action_leave()

    def action_interrupt(self) -> None:
        self.exit()

    def action_help(self) -> None:
        self.push_screen(TextPage("Keys", help_lines, self.look))

    def action_pause(self) -> None:
        self.change(paused=not self.view.paused)
        self.frame = self.newest if not self.view.paused else self.frame
        self.draw()

    def action_order(self) -> None:
        following = ORDERS[(ORDERS.index(self.view.order) + 1) % len(ORDERS)]
        self.change(order=following, selected=None, everything=False)

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.value = self.view.filter
        field.add_class("open")
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.has_class("open"):
            self.change(filter=event.value.strip(), selected=None)

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        self.close_filter()

    def close_filter(self) -> bool:
        field = self.query_one("#filter", Input)
        was_open = field.has_class("open")
        field.remove_class("open")
        self.screen.set_focus(None)
        self.call_after_refresh(self.draw)
        return was_open

    def action_reset(self) -> None:
        """Back to the present, one step at a time: the filter, the past, the selected row, the message."""
        view = self.view
        if self.close_filter() or view.filter:
            self.change(filter="", selected=None)
        elif view.past is not None:
            self._show_past(None, 0)
        elif view.selected is not None:
            self.change(selected=None, everything=False)
        else:
            self.change(message="", is_error=False)

    def action_move(self, by: int) -> None:
        if self.frame is not None:
            selected, everything = moved(self.frame, self.view, by, self.drawn.keys)
            self.change(selected=selected, everything=everything)

    def action_iterate(self, by: int) -> None:
        """One iteration further into the past. The newest request wins."""
        feed = self.feed
        back = self.view.back + by if self.view.past is not None else by - 1
        if self.actions.is_running("past"):
            self._wanted_back += by
            return
        if feed is None or back < 0:
            self._show_past(None, 0)
            return

        def done(found: PastIteration | None) -> None:
            if found is not None:
                self._show_past(found, back)
            else:
                self.change(message="No earlier iteration was recorded.", is_error=False)
            more, self._wanted_back = self._wanted_back, 0
            if more:
                self.action_iterate(more)

        self.begin("past", lambda: feed.past(back), done)

    def _show_past(self, past: PastIteration | None, back: int) -> None:
        self.change(past=past, back=back, selected=None)

    def action_open(self) -> None:
        feed, name = self.feed, operation_of(self.view)
        if feed is None or name is None:
            self.change(message="Select an operation with the arrow keys first.", is_error=False)
            return
        detail = feed.operation(name)
        if detail is None:
            self.change(message="Nothing more is known about it yet.", is_error=False)
            return
        self.push_screen(TextPage(name, lambda width, look: operation_lines(detail, width, look), self.look))

    def action_trace(self) -> None:
        feed = self.feed
        if feed is None:
            return
        if self.begin("trace", lambda: capture_trace(feed.folder), self.say):
            self.change(message=f"Waiting for a torch trace of {many(STEPS, 'step')}.", is_error=False)

    def action_report(self) -> None:
        feed = self.feed
        if feed is None:
            return
        if self.begin("report", lambda: write_report(feed.folder), self.say):
            self.change(message="Writing the report.", is_error=False)

    def action_stacks(self) -> None:
        self._ask_for_stacks(self._show_stacks)
        if self.actions.is_running("stacks"):
            self.change(message="Waiting for the stacks.", is_error=False)

    def _ask_for_stacks(self, show: Callable[[Stacks], None]) -> None:
        feed = self.feed
        if feed is None:
            return

        def done(found: Stacks) -> None:
            self.change(message="", is_error=False, stacks=found)
            show(found)

        self.begin("stacks", lambda: ask_for_stacks(feed.folder), done)

    def _show_stacks(self, found: Stacks) -> None:
        self.push_screen(TextPage("Python stacks", lambda width, look: stack_lines(found, width, look), self.look))

    def frame_arrived(self, frame: Frame) -> None:
        """Ask for the stacks once when the training gets stuck, and forget them when it goes on."""
        if frame.stuck is None:
            self._asked_for_stacks = False
            if self.view.stacks is not None:
                self.change(stacks=None)
        elif not self._asked_for_stacks:
            self._asked_for_stacks = True
            self._ask_for_stacks(lambda _: None)

    def action_colours(self) -> None:
        is_light = self.look.palette is LIGHT
        self.look = Look(self.look.glyphs, DARK if is_light else LIGHT)
        self.theme = "rlprof-dark" if is_light else "rlprof-light"
        self.draw()
