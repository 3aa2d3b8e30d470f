"""The dashboard as lines: a pure function of a frame, what the user chose, and the size of the terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from frames import HOSTILE, MS, PLAIN, TREE, frame, lane, many_lanes, many_parts, parts, past, stuck_frame, text_of

from rlprof.analysis.figures import duration, percent
from rlprof.live.frame import Frame, Speed, Stuck, Usage
from rlprof.top.drawing import bullet, curve
from rlprof.top.look import ASCII, DARK, LIGHT, UNICODE, Look
from rlprof.top.screen import Size, screen
from rlprof.top.view import View

SIZES = [(100, 30), (60, 20), (80, 24), (92, 14), (140, 50), (200, 60), (34, 12)]
EMPTY: dict[str, object] = {
    "parts": (), "lanes": (), "findings": (), "changes": (), "marks": (), "usage": Usage(), "speed": Speed(),
    "iterations": 0, "planned": None, "eta_s": None, "iteration_ns": None, "steps": 0, "episodes": 0,
}  # fmt: skip


def hostile(name: str) -> Frame:
    tree = (
        (name, "other", 0, True, 90.0, 0.0, 91.0, 0.0, 1, 1e6),
        (name, name, 1, False, 90.0, 90.0, 91.0, 91.0, 1, 1e6),
    )
    lanes = (lane(name, on_driver=True, doing=(name, name), waits=True, waits_for=(name, name)), *[lane(name)] * 3)
    return frame(name=name, state=name or "running", parts=parts(tree), lanes=lanes, problem=name)


STATES = {
    "running": frame(),
    "stuck": stuck_frame(problem="The figures are 300 s old."),
    "finished": frame(state="finished"),
    "failed": frame(state="ValueError: " + "no " * 300),
    "empty": frame(**EMPTY),
    "empty and ended": frame(**EMPTY, state="killed"),
    "large": frame(lanes=many_lanes(), hidden_lanes=500, parts=many_parts()),
    **{f"hostile {number}": hostile(name) for number, name in enumerate(HOSTILE)},
}
VIEWS = {
    "tree": View(),
    "now": View(order="now", selected=("env_step",)),
    "past": View(past=past(3), back=3),
    "filtered": View(filter="for", paused=True),
    "nothing": View(filter="no such name", message="x" * 500, is_error=True, runs_training=True),
}


@pytest.mark.parametrize("look", [PLAIN, Look(ASCII), Look(UNICODE, DARK)], ids=["plain", "ascii", "colours"])
@pytest.mark.parametrize("state", STATES)
def test_the_screen_fills_the_terminal_exactly_at_every_size(state, look):
    for width, height in SIZES:
        for view in VIEWS.values():
            lines = screen(STATES[state], view, Size(width, height), look).lines
            assert len(lines) == height
            assert {line.cell_len for line in lines} == {width}


@pytest.mark.parametrize("state", ["running", "stuck", "large", "empty"])
def test_no_terminal_is_too_small(state):
    for height in range(1, 14):
        for width in (1, 20, 30, 45, 92, 100):
            for view in VIEWS.values():
                assert len(screen(STATES[state], view, Size(width, height), PLAIN).lines) == max(height, 1)


def test_a_training_that_is_starting_has_no_problem():
    starting = frame(**EMPTY, written=0.0, problem="Nothing was written yet: the training is starting.")
    text = text_of(screen(starting, View(), Size(100, 30), PLAIN).lines)
    assert "Nothing was written" not in text
    assert "Waiting for the first figures" in text


@pytest.mark.parametrize("state", STATES)
def test_nothing_on_the_screen_moves_the_cursor(state):
    for view in VIEWS.values():
        text = text_of(screen(STATES[state], view, Size(100, 30), PLAIN).lines)
        assert all(char.isprintable() or char == "\n" for char in text)
        text_of(screen(STATES[state], view, Size(100, 30), Look(ASCII)).lines).encode("ascii")


def test_everything_is_on_one_screen_of_100_x_30():
    text = text_of(screen(frame(), View(), Size(100, 30), PLAIN).lines)
    for expected in (
        "cartpole_ppo", "running", "12,345 steps/s now", "11,900 mean", "iteration 41 of 100", "41.0%", "192 s left",
        "1.23M steps", "Operations", "last 10.2 s", "policy_forward", "16.0%", "22.1%", "690 us", "5 lanes", "busy",
        "waits for 2 lanes", "83%", "1.87 of 2 cores", "1.29 GB of 16.0 GB",
        "env_step takes 1.4x what it took 10 minutes ago",
        "memory is above 1 GB", "train.py:45: env.step() computes in Python loops", "1.62x as fast", "Change: Step all",
        "rlprof compare", "q quit", "r report",
    ):  # fmt: skip
        assert expected in text, expected


def test_a_small_terminal_keeps_the_most_important():
    text = text_of(screen(frame(), View(), Size(60, 20), PLAIN).lines)
    for expected in ("cartpole_ppo", "12,345 steps/s now", "iteration 41 of 100", "env_step", "51.4%", "main",
                     "CPU 1.87", "train.py:45", "q quit"):  # fmt: skip
        assert expected in text, expected


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_figures_of_a_visible_operation_are_never_cut(width, height):
    for state in ("running", "stuck", "finished", "large"):
        drawn = screen(STATES[state], View(), Size(width, height), PLAIN)
        shown = {part.path: part for part in STATES[state].parts}
        lines = [line.plain for line in drawn.lines]
        for key in drawn.keys:
            assert any(percent(shown[key].share) in line for line in lines), key


@pytest.mark.parametrize("palette", [DARK, LIGHT])
def test_nothing_is_told_by_colour_alone(palette):
    for state in STATES.values():
        for view in VIEWS.values():
            plain = screen(state, view, Size(100, 30), PLAIN).lines
            assert text_of(plain) == text_of(screen(state, view, Size(100, 30), Look(UNICODE, palette)).lines)


def test_the_selected_row_is_marked_without_colour():
    view = View(selected=("rollout", "env_step"))
    (line,) = [line.plain for line in screen(frame(), view, Size(100, 30), PLAIN).lines if "▸" in line.plain]
    assert "env_step" in line


def test_a_run_that_has_ended_shows_no_present():
    text = text_of(screen(frame(state="killed"), View(), Size(100, 30), PLAIN).lines)
    assert "killed" in text
    assert "now" not in text.replace("Change", "")
    assert "left" not in text
    assert duration(frame().parts[1].ns) in text


def test_the_bar_ends_at_the_share_now_and_the_tick_is_at_the_share_of_the_run():
    style = PLAIN.style("ink")
    assert bullet(50.0, 25.0, 100.0, 20, style, PLAIN).plain == "━━━━━┃━━━━          "
    assert bullet(25.0, 50.0, 100.0, 20, style, PLAIN).plain == "━━━━━     ┃         "
    assert bullet(None, 50.0, 100.0, 20, style, PLAIN).plain == "━━━━━━━━━━          "
    assert bullet(100.0, 100.0, 100.0, 4, style, PLAIN).plain == "━━━┃"
    assert bullet(12.5, None, 100.0, 4, style, PLAIN).plain == "╸   "
    assert bullet(0.0, 0.0, 0.0, 4, style, PLAIN).plain == "    "


def test_a_curve_has_its_newest_value_at_the_end_and_averages_what_does_not_fit():
    assert curve([0, 1, 2, 3, 4, 5, 6, 7], 10, UNICODE) == "▁▂▃▄▅▆▇█"
    assert curve([0, 0, 7, 7], 2, UNICODE) == "▁█"
    assert curve([5, 5, 5], 5, UNICODE) == "▄▄▄"
    assert curve([], 5, UNICODE) == curve([1, 2], 0, UNICODE) == ""
    assert curve([0, 14], 2, ASCII) == ".@"


def test_many_lanes_are_grouped_and_all_are_counted():
    text = text_of(screen(STATES["large"], View(), Size(100, 30), PLAIN).lines)
    assert "1,500 lanes" in text
    assert "999 env" in text
    assert "666 env_step" in text
    assert "500 more" in text


def test_lanes_are_in_the_order_of_their_numbers_and_ended_ones_come_last():
    lanes = (lane("worker-10"), lane("worker-9"), lane("worker-1", alive=False, doing=()), lane("main"))
    text = text_of(screen(frame(lanes=lanes), View(), Size(100, 30), PLAIN).lines)
    assert re.findall(r"│ (main|worker-\d+) ", text) == ["main", "worker-9", "worker-10", "worker-1"]
    assert re.search(r"worker-1 +ended", text)


def test_the_tree_keeps_its_largest_rows_and_says_how_many_are_left_out():
    tree = tuple((f"small_{number}", "other", 0, False, 1.0, 1.0, 1.0, 1.0, 1, MS) for number in range(60))
    tree += (
        ("large", "learning", 0, True, 40.0, 10.0, 40.0, 10.0, 1, MS),
        ("inner", "learning", 1, False, 30.0, 30.0, 30.0, 30.0, 1, MS),
    )
    drawn = screen(frame(parts=parts(tree)), View(), Size(100, 30), PLAIN)
    assert {("large",), ("large", "inner")} <= set(drawn.keys)
    (more,) = re.findall(r"(\d+) smaller operations", text_of(drawn.lines))
    assert int(more) + len(drawn.keys) == 62


def test_a_stuck_training_says_so_first():
    text = text_of(screen(stuck_frame(), View(), Size(100, 30), PLAIN).lines)
    assert text.startswith(" ! Stuck for 312 s. No operation has ended for 195 times the usual iteration.")
    assert "main has been in rollout > worker_wait for 312 s." in text


def test_what_the_reason_says_of_a_lane_is_not_repeated_and_times_are_rounded_alike():
    lanes = (
        lane(doing=("rollout", "env_wait"), since_s=37.1, waits=True),
        *(lane(name, kind="process", doing=("env_step",), since_s=since)
          for name, since in (("env-1", 36.8), ("env-10", 25.0), ("env-2", 0.2), ("env-3", 37.0))),
    )  # fmt: skip
    reason = "The driver waits in env_wait for env-1 and 3 other lanes."
    stuck = Stuck(since=0.0, seconds=37.5, reason=reason, lanes=lanes)
    text = text_of(screen(frame(stuck=stuck, lanes=lanes, age_s=0.4), View(), Size(100, 30), PLAIN).lines)
    assert text.splitlines()[:3] == [
        f"{line:100}"
        for line in (f" ! Stuck for 38 s. {reason}", "   env-10 has been in env_step for 25 s.",
                     "   env-2 is in env_step. 1 more.")
    ]  # fmt: skip
    assert re.search(r"│ main +env_wait, waits|│ main +waits", text)
    assert re.search(r"env-1 +env_step +38 s", text)
    assert re.search(r"env-2 +env_step +200 ms", text)


def test_of_a_silent_training_nobody_knows_since_when_lanes_are_inside_operations():
    lanes = (lane(doing=("rollout", "env_step"), since_s=None), lane("env-1", doing=("reset",), since_s=None))
    stuck = Stuck(since=0.0, seconds=40.0, reason="The process has not written for 40 s: the disk.", lanes=lanes)
    text = text_of(screen(frame(stuck=stuck, lanes=lanes, age_s=40.0), View(), Size(100, 30), PLAIN).lines)
    assert "main is in rollout > env_step. " in text
    assert "env-1 is in reset. " in text
    assert "2 lanes at the last flush" in text
    assert re.search(r"│ main +in env_step +83%", text)


def test_the_duration_of_an_iteration_is_that_of_now_while_it_runs_and_the_median_afterwards():
    known = {"iteration_ns": 1_600 * MS, "iteration_now_ns": 2_400 * MS, "planned": None}
    running = text_of(screen(frame(**known), View(), Size(120, 30), PLAIN).lines)
    assert "2.40 s per iteration" in running
    ended = text_of(screen(frame(**known, state="finished"), View(), Size(120, 30), PLAIN).lines)
    assert "1.60 s per iteration (median)" in ended


def test_without_a_share_of_now_the_legend_explains_none():
    heading = next(
        line.plain for line in screen(frame(), View(), Size(140, 30), PLAIN).lines if "mean call" in line.plain
    )
    assert "━ now ┃ run" in heading
    unknown = parts(tuple((*row[:6], None, None, *row[8:]) for row in TREE))
    drawn = screen(frame(parts=unknown), View(), Size(140, 30), PLAIN).lines
    heading = next(line.plain for line in drawn if "mean call" in line.plain)
    assert "━ run" in heading
    assert "┃" not in heading


def test_a_change_has_both_durations_where_they_fit():
    (change,) = frame().changes
    wide = text_of(screen(frame(), View(), Size(120, 30), PLAIN).lines)
    assert "env_step takes 1.4x what it took 10 minutes ago: 1.36 ms per call, 960 us before" in wide
    faster = replace(change, ratio=0.25, ago_s=7200.0)
    text = text_of(screen(frame(changes=(faster,)), View(), Size(60, 24), PLAIN).lines)
    assert "env_step is 4.0x as fast as 2 hours ago" in text
    assert "per call" not in text.replace("per iteration", "")


def test_markup_in_names_is_text():
    text = text_of(screen(hostile("[red]bold[/red]"), View(), Size(100, 30), PLAIN).lines)
    assert "[red]bold[/red]" in text


def test_what_is_unknown_is_left_out_or_a_dash():
    text = text_of(screen(STATES["empty"], View(), Size(100, 30), PLAIN).lines)
    assert "None" not in text.replace("None has recorded", "")
    assert "Reading the session." in text
    assert "0 steps" not in text
    unknown = tuple(
        (*row[:6], None, None, *row[8:]) for row in (("a", "other", 0, False, 100.0, 100.0, 0, 0, 0, None),)
    )
    text = text_of(screen(frame(parts=parts(unknown)), View(), Size(100, 30), PLAIN).lines)
    assert re.search(r"a +━+ +- 100\.0% +-", text)
