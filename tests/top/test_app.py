"""Every key of the dashboard, driven as a user does, with planted frames."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from frames import HOSTILE, detail, frame, many_lanes, many_parts, past, stuck_frame
from sessions import Written
from textual.widgets import Input

from rlprof.errors import RlprofError
from rlprof.live.stacks import ProcessStacks, ThreadStack
from rlprof.live.stacks_text import Stacks
from rlprof.session.requests import pending
from rlprof.top import app as app_module
from rlprof.top.app import TopApp
from rlprof.top.canvas import Canvas
from rlprof.top.look import DARK, LIGHT, UNICODE, Look
from rlprof.top.pages import TextPage

SECONDS = 30


class Planted:
    """A source of frames whose figures the test sets."""

    def __init__(self, shown=None, folder=Path("session")):
        self.now = shown or frame()
        self.folder = folder
        self.path = folder / "session.db"
        self.asked = []
        self.hold = threading.Event()
        self.hold.set()

    def frame(self):
        self.hold.wait(SECONDS)
        if isinstance(self.now, Exception):
            raise self.now
        return self.now

    def refresh(self, force=False):
        return False

    def past(self, back):
        self.asked.append(back)
        return past(back) if back < 5 else None

    def operation(self, name):
        return detail(name) if name == "env_step" else None

    def close(self):
        pass


def drive(script, source=None, size=(100, 30), look=None):
    """Run the dashboard and, beside it, `script(pilot, app, source)`. Returns its result."""
    source = source or Planted()

    async def run():
        app = TopApp(source, interval=0.05, look=look or Look(UNICODE, DARK))
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.frame is not None or app.return_value is not None)
            await pilot.pause()
            await script(pilot, app, source)
        app.finish()
        return app

    return asyncio.run(run())


async def until(pilot, condition):
    async def wait():
        while not condition():
            await pilot.pause(0.01)

    await asyncio.wait_for(wait(), SECONDS)


def dashboard(app):
    return app.screen_stack[0].query_one("#dashboard", Canvas).text


def page(app):
    assert isinstance(app.screen, TextPage)
    return app.screen.query_one("#text", Canvas).text


def test_the_first_frame_fills_the_terminal():
    async def script(pilot, app, source):
        lines = dashboard(app).splitlines()
        assert len(lines) == 30
        assert "cartpole_ppo" in lines[0]
        assert "12,345 steps/s now" in lines[1]
        assert lines[-1].startswith(" q quit")

    drive(script)


def test_new_figures_appear_by_themselves_and_only_changed_lines_are_drawn():
    async def script(pilot, app, source):
        canvas = app.query_one("#dashboard", Canvas)
        before = list(canvas._strips)
        source.now = frame(steps=2_340_000)
        await until(pilot, lambda: "2.34M steps" in dashboard(app))
        kept = [old is new for old, new in zip(before, canvas._strips)]
        assert kept.count(False) == 1

    drive(script)


def test_space_pauses_and_goes_on():
    async def script(pilot, app, source):
        await pilot.press("space")
        source.now = frame(steps=2_340_000)
        await until(pilot, lambda: app.newest.steps == 2_340_000)
        assert "1.23M steps" in dashboard(app)
        assert "paused" in dashboard(app)
        await pilot.press("space")
        assert "2.34M steps" in dashboard(app)
        assert "paused" not in dashboard(app)

    drive(script)


def test_o_goes_through_all_orders():
    async def script(pilot, app, source):
        seen = []
        for _ in range(4):
            await pilot.press("o")
            seen.append(app.view.order)
        assert seen == ["now", "whole", "name", "tree"]
        await pilot.press("o", "o", "o")
        assert "Operations by name" in dashboard(app)
        lines = dashboard(app).splitlines()
        shown = [line.split()[1] for line in lines[5:10]]
        assert shown == sorted(shown)

    drive(script)


def test_the_filter_is_applied_while_it_is_typed_and_escape_removes_it():
    async def script(pilot, app, source):
        await pilot.press("slash", *"grad")
        await pilot.pause()
        assert app.view.filter == "grad"
        assert "zero_grad" in dashboard(app)
        assert "backward" not in dashboard(app)
        await pilot.press("enter")
        assert not app.query_one("#filter", Input).has_class("open")
        assert app.view.filter == "grad"
        await pilot.press("o")  # letters are keys again
        assert app.view.order == "now"
        await pilot.press("escape")
        assert app.view.filter == ""
        await pilot.press("slash", "q", "escape")  # q is a letter here
        assert app.view.filter == ""
        assert app.is_running

    drive(script)


def test_the_arrow_keys_select_and_enter_opens_an_operation():
    async def script(pilot, app, source):
        await pilot.press("enter")
        assert "Select an operation" in dashboard(app)
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        text = page(app)
        assert "20,992 calls" in text
        assert "env.step(action)" in text
        await pilot.press("escape")
        assert app.view.selected == ("rollout", "env_step")
        await pilot.press("down", "enter")
        assert "Nothing more is known" in dashboard(app)
        await pilot.press("escape")
        assert app.view.selected is None

    drive(script)


def test_left_and_right_go_through_past_iterations():
    async def script(pilot, app, source):
        await pilot.press("left")
        await until(pilot, lambda: app.view.past is not None)
        assert "Iteration 41" in dashboard(app)
        await pilot.press("left")
        await until(pilot, lambda: app.view.back == 1)
        assert "Iteration 40" in dashboard(app)
        await pilot.press("right")
        await until(pilot, lambda: app.view.back == 0)
        await pilot.press("right")
        assert app.view.past is None
        await pilot.press("left")
        await until(pilot, lambda: app.view.past is not None)
        await pilot.press("escape")
        assert app.view.past is None

    drive(script)


def test_many_presses_of_left_end_at_the_first_iteration():
    async def script(pilot, app, source):
        await pilot.press(*["left"] * 12)
        await until(pilot, lambda: "No earlier iteration" in app.view.message)
        assert app.view.past is not None

    drive(script)


def test_help_names_every_key():
    async def script(pilot, app, source):
        await pilot.press("question_mark")
        await pilot.pause()
        for key in ("q", "space", "o", "/", "enter", "left, right", "s", "t", "r", "d"):
            assert any(line.strip().startswith(f"{key} ") for line in page(app).splitlines()), key
        await pilot.press("q")
        assert app.is_running
        assert app.screen is app.screen_stack[0]

    drive(script)


def test_d_switches_between_dark_and_light():
    async def script(pilot, app, source):
        await pilot.press("d")
        assert (app.look.palette, app.theme) == (LIGHT, "rlprof-light")
        await pilot.press("d")
        assert (app.look.palette, app.theme) == (DARK, "rlprof-dark")

    drive(script)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_q_and_ctrl_c_quit(key):
    async def script(pilot, app, source):
        await pilot.press(key)
        await until(pilot, lambda: not app.is_running)

    assert drive(script).return_value is None


@pytest.mark.parametrize(("key", "action"), [("t", "capture_trace"), ("r", "write_report")])
def test_an_action_shows_that_it_runs_and_then_its_result(key, action, monkeypatch):
    go_on = threading.Event()
    calls = []

    def act(folder):
        calls.append(folder)
        go_on.wait(SECONDS)
        return "The result is here."

    monkeypatch.setattr(app_module, action, act)

    async def script(pilot, app, source):
        await pilot.press(key)
        assert app.view.message.startswith(("Waiting for a torch trace", "Writing the report"))
        await pilot.press(key)  # one at a time
        await pilot.press("o")  # other keys go on
        assert app.view.order == "now"
        go_on.set()
        await until(pilot, lambda: "The result is here." in dashboard(app))
        assert calls == [source.folder]
        await pilot.press("escape", "escape")
        assert "The result is here." not in dashboard(app)

    drive(script)


def test_an_action_that_fails_shows_the_reason(tmp_path):
    async def script(pilot, app, source):
        for key in "tsr":
            await pilot.press(key)
            await until(pilot, lambda: app.view.is_error)
            assert "session" in app.view.message
            await pilot.press("escape")

    drive(script, Planted(folder=tmp_path / "no session"))


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("runs/leak_1 does not exist", "runs/leak_1 does not exist."),
        ("the disk is full", "The disk is full."),
        ("session.db is not an SQLite file.", "session.db is not an SQLite file."),
        ("step2 is unknown", "step2 is unknown."),
        ("iPad is no host", "iPad is no host."),
    ],
)
def test_a_sentence_begins_with_a_capital_but_a_path_stays_as_it_is(message, shown):
    async def script(pilot, app, source):
        app.say(message)
        assert app.view.message == shown

    drive(script)


def test_a_trace_of_a_training_without_iterations_is_refused(tmp_path):
    written = Written(tmp_path / "run_20260101-120000")
    written.work("env_step", 5_000_000)
    written.flush()

    async def script(pilot, app, source):
        await pilot.press("t")
        await until(pilot, lambda: app.view.is_error)
        assert app.view.message.startswith("No iteration has ended in this training, so there are no steps to capture.")
        assert not app.actions.is_running("trace")

    drive(script, Planted(folder=tmp_path / "run_20260101-120000"))
    assert not pending(tmp_path / "run_20260101-120000")


MAIN = ThreadStack("MainThread", True, (("train.py", 3, "main", "train()"), ("train.py", 9, "train", "queue.get()")))


STACKS = Stacks("ppo_1", "", (ProcessStacks(7, "ppo", True, "rlprof", (MAIN,)),))


def test_s_shows_the_stacks(monkeypatch):
    monkeypatch.setattr(app_module, "ask_for_stacks", lambda _: STACKS)

    async def script(pilot, app, source):
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, TextPage))
        await pilot.pause()
        assert "queue.get()" in page(app)

    drive(script)


def test_a_stuck_training_asks_for_its_stacks_once_and_shows_them(monkeypatch):
    asked = []

    def ask(folder):
        asked.append(folder)
        return STACKS

    monkeypatch.setattr(app_module, "ask_for_stacks", ask)

    async def script(pilot, app, source):
        source.now = stuck_frame()
        await until(pilot, lambda: "queue.get()" in dashboard(app))
        assert "Stuck for 312 s" in dashboard(app)
        for steps in (1, 2, 3):
            source.now = stuck_frame(steps=steps)
            await until(pilot, lambda steps=steps: app.frame.steps == steps)
        assert len(asked) == 1
        source.now = frame()
        await until(pilot, lambda: "Stuck" not in dashboard(app))
        assert app.view.stacks is None

    drive(script)


def test_a_slow_disk_does_not_delay_keys():
    async def script(pilot, app, source):
        source.hold.clear()
        await pilot.press("o", "down")
        assert app.view.order == "now"
        assert app.view.selected is not None
        source.hold.set()

    drive(script)


def test_a_run_that_ends_keeps_its_last_figures():
    async def script(pilot, app, source):
        source.now = frame(state="killed", problem="The session was deleted.")
        await until(pilot, lambda: "killed" in dashboard(app))
        assert "11,900 steps/s mean" in dashboard(app)
        assert "The session was deleted." in dashboard(app)

    drive(script)


def test_a_session_that_was_never_readable_is_one_sentence():
    source = Planted()
    source.now = RlprofError("session.db is not an SQLite file, so no session")

    async def script(pilot, app, source):
        await until(pilot, lambda: not app.is_running)

    assert drive(script, source).return_value == "session.db is not an SQLite file, so no session"


@pytest.mark.parametrize("size", [(60, 20), (200, 60), (30, 10)])
def test_the_dashboard_follows_a_resize(size):
    async def script(pilot, app, source):
        await pilot.resize_terminal(*size)
        await until(pilot, lambda: len(dashboard(app).splitlines()) == size[1])
        assert {len(line) for line in dashboard(app).splitlines()} == {size[0]}

    drive(script)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_shown_as_text_on_every_page(name):
    tree = ((name, "other", 0, False, 90.0, 90.0, 91.0, 91.0, 1, 1e6),)
    from frames import parts

    source = Planted(frame(name=name, parts=parts(tree), lanes=many_lanes(3)))
    source.operation = detail

    async def script(pilot, app, source):
        await pilot.press("down", "enter")
        await pilot.pause()
        assert "20,992 calls" in page(app)
        await pilot.press("escape")
        assert app.screen is app.screen_stack[0]

    drive(script, source)


def test_a_thousand_lanes_and_500_operations_are_drawn_and_can_be_searched():
    async def script(pilot, app, source):
        assert "1,000 lanes" in dashboard(app)
        await pilot.press("slash", *"operation_499", "enter")
        assert "operation_499" in dashboard(app)

    drive(script, Planted(frame(lanes=many_lanes(), parts=many_parts())))
