"""Frames become what the live strip shows: the same figures, bounded, and as plain text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from serving import NASTY

from rlprof.analysis.changes import Change
from rlprof.live.frame import Frame, LaneNow, Part, Speed, Stuck, Usage
from rlprof.serve.now import MOST_LANES, MOST_PARTS, now_of
from rlprof.serve.rendered import encoded
from rlprof.session.records import Mark

DRIVER = LaneNow("main", "thread", True, True, ("rollout", "env_step"), 3.0, True, ("env-0", "env-1"), 42.0)
RUNNING = Frame(
    Path("/runs/ppo"), "ppo", "running", 1e9, 2e9, 0.5, 754.0, iterations=12, planned=100, eta_s=600.0,
    iteration_ns=5e7, open_s=0.01, steps=123_456, speed=Speed("step", 1234.5, 1000.0, (900.0, 1100.0)),
    window_iterations=20, window_ns=10**10,
    parts=(
        Part("rollout", "other", 0, True, 70.0, 1.0, 71.0, 2.0, 7, 1, None, ("rollout",)),
        Part("env_step", "environment", 1, False, 69.0, 69.0, 69.0, None, 7, 9, 1.0, ("rollout", "env_step")),
        Part("unattributed", "unattributed", 0, False, 30.0, 30.0, 28.0, 28.0, 3, 0, None),
    ),
    lanes=(DRIVER, LaneNow("env-0", "process", False, True)),
    usage=Usage(150.0, 50.0, 25.0, 8, 3 << 30, 5 << 30),
)  # fmt: skip


def test_figures_are_written_as_in_the_report():
    now = now_of(RUNNING)
    assert dict(now["facts"]) == {
        "run time": "12m34s", "iterations": "12 of 100", "steps": "123,456", "left": "10m00s",
        "per iteration": "50.0 ms", "since the last one": "10.0 ms",
    }  # fmt: skip
    assert (now["speed"]["unit"], now["speed"]["now"], now["speed"]["mean"]) == ("steps/s", "1,234", "1,000")
    assert now["window"] == "the last 10.0 s (20 iterations)"
    assert [(part["name"], part["nowText"], part["shareText"]) for part in now["parts"]] == [
        ("your code in rollout", "2.0%", "1.0%"), ("env_step", "-", "69.0%"),
        ("your code outside of operations", "28.0%", "30.0%"),
    ]  # fmt: skip
    assert [(gauge["what"], gauge["value"]) for gauge in now["usage"]] == [("CPU", "200%"), ("memory", "3.00 GB")]


def test_a_lane_says_what_it_does_and_for_whom_it_waits():
    driver, worker = now_of(RUNNING)["lanes"]
    assert (driver["name"], driver["doing"], driver["path"]) == ("driver (main)", "env_step", "rollout > env_step")
    assert (driver["waits"], driver["waitsFor"], driver["since"]) == (True, ["env-0", "env-1"], "3.00 s")
    assert (worker["name"], worker["doing"], worker["busyText"]) == ("env-0", "", "-")


@pytest.mark.parametrize(("open_s", "shown"), [(None, "-"), (0.001, "1.00 ms"), (60.0, "60.0 s")])
def test_the_time_since_the_last_iteration_has_a_fixed_place(open_s, shown):
    assert now_of(replace(RUNNING, open_s=open_s))["facts"][-1] == ("since the last one", shown)


def test_workers_with_long_names_differ_at_the_end():
    lanes = tuple(LaneNow(f"SyncVectorEnvironmentWorkerProcess-{n}", "process", False, True) for n in range(12))
    names = [lane["name"] for lane in now_of(replace(RUNNING, lanes=lanes))["lanes"]]
    assert len(set(names)) == 12
    assert {len(name) for name in names} == {20}


def test_an_operation_at_two_places_has_the_one_around_it():
    places = [("rollout", "env_step"), ("evaluation", "env_step"), ("update", "backward")]
    parts = tuple(Part(path[-1], "other", 1, False, 30.0, 30.0, 30.0, 30.0, 7, 1, 1.0, path) for path in places)
    shown = [(part["name"], part["where"]) for part in now_of(replace(RUNNING, parts=parts))["parts"]]
    assert shown == [("env_step", "rollout"), ("env_step", "evaluation"), ("backward", "")]


def test_only_marks_that_warn_are_shown():
    kinds = ["alert", "torch_trace", "torch_trace_failed", "warning", "checkpoint"]
    marks = tuple(Mark(place, kind, f"text of {kind}") for place, kind in enumerate(kinds))
    shown = [mark["kind"] for mark in now_of(replace(RUNNING, marks=marks))["alerts"]]
    assert shown == ["alert", "torch_trace_failed", "warning"]


@pytest.mark.parametrize("state", ["finished", "killed", "failed"])
def test_a_run_that_has_ended_does_nothing_now(state):
    now = now_of(replace(RUNNING, state=state))
    assert (now["state"], now["running"], now["speed"]) == (state, False, None)
    assert now["parts"] == now["lanes"] == now["usage"] == []
    assert set(dict(now["facts"])) == {"run time", "iterations", "steps"}


def test_what_is_unknown_is_left_out():
    empty = Frame(Path("/runs/ppo"), "ppo", "running", 1e9, 0.0, 0.0, 0.0)
    now = now_of(empty)
    assert dict(now["facts"]) == {"run time": "0 ns"}
    assert (now["speed"], now["usage"], now["window"], now["stuck"]) == (None, [], "", None)


def test_a_stuck_training_has_its_reason_and_lanes():
    now = now_of(replace(RUNNING, stuck=Stuck(1e9, 95.0, "No span has ended.", (DRIVER,))))
    assert (now["stuck"]["seconds"], now["stuck"]["reason"]) == ("95 s", "No span has ended.")
    assert now["stuck"]["lanes"][0]["path"] == "rollout > env_step"


def test_changes_are_sentences():
    slower, faster = Change("env_step", 1.4, 1e6, 1.4e6, 600.0, 50.0), Change("backward", 0.5, 2e6, 1e6, 90.0, 9.0)
    found = now_of(replace(RUNNING, changes=(slower, faster)))["changes"]
    assert [change["kind"] for change in found] == ["slower", "faster"]
    assert [change["text"] for change in found] == [
        "env_step takes 1.4x what it took 10m00s ago: 1.00 ms per call then, 1.40 ms now.",
        "backward is 2x as fast as 90.0 s ago: 2.00 ms per call then, 1.00 ms now.",
    ]


def test_a_thousand_lanes_with_hostile_names_stay_small_and_plain():
    lanes = tuple(LaneNow(name * 9, "thread", False, True, NASTY * 5, 1.0, True, NASTY) for name in NASTY * 125)
    parts = tuple(Part(name, name, 0, False, 1.0, 1.0, 1.0, 1.0, 1, 1, 1.0) for name in NASTY * 50)
    marks = tuple(Mark(1, name, name * 99) for name in NASTY)
    frame = replace(RUNNING, name=NASTY[0], lanes=lanes, parts=parts, marks=marks, problem="\x1b[2J" * 9_999)
    now = now_of(frame)
    assert (len(now["lanes"]), now["hiddenLanes"]) == (MOST_LANES, len(lanes) - MOST_LANES)
    assert len(now["parts"]) == MOST_PARTS
    text = encoded(now)
    assert len(text) < 100_000
    assert "\n" not in text
    assert "\x1b" not in json.loads(text)["problem"]
    assert all(part["category"].isalnum() or part["category"] == "" for part in now["parts"])
