"""Where a stuck training is: which calls of which threads the dashboard shows, with planted stacks."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from frames import HOSTILE, PLAIN, frame, lane, stuck_frame, text_of

from rlprof.live.frame import Stuck
from rlprof.live.stacks import ProcessStacks, ThreadStack
from rlprof.live.stacks_text import Stacks
from rlprof.top.look import ASCII, Look
from rlprof.top.screen import Size, screen
from rlprof.top.stuck import natural_lines, stuck_here
from rlprof.top.view import View

STANDARD = os.path.dirname(os.__file__)
SITE = "/elsewhere/lib/python3.11/site-packages"
RECEIVES = (f"{STANDARD}/multiprocessing/connection.py", 395, "Connection._recv", "chunk = read(handle, remaining)")
STEPS = ("/project/train.py", 8, "collect", "envs.step(actions)")
MAIN = ThreadStack(
    "MainThread", True,
    (
        ("/project/train.py", 30, "<module>", "main()"), ("/project/train.py", 20, "main", "collect(envs)"), STEPS,
        (f"{SITE}/gymnasium/vector/async_vector_env.py", 390, "AsyncVectorEnv.step", "return self.step_wait()"),
        RECEIVES,
    ),
)  # fmt: skip
STARTS = (
    ("/project/train.py", 5, "<module>", "envs = AsyncVectorEnv(makers)"),
    ("/elsewhere/lib/python3.11/multiprocessing/process.py", 314, "BaseProcess._bootstrap", "self.run()"),
    ("/elsewhere/lib/python3.11/multiprocessing/process.py", 108, "BaseProcess.run", "self._target(*self._args)"),
)
IDLE = ThreadStack("MainThread", True, (*STARTS, (f"{SITE}/gymnasium/vector/async.py", 740, "worker", "recv()"),
                                        RECEIVES))  # fmt: skip
HANGS = ThreadStack("MainThread", True, (*STARTS, (f"{SITE}/gymnasium/vector/async.py", 765, "worker", "env.step()"),
                                         ("/project/envs.py", 9, "Hanging.step", "time.sleep(1)")))  # fmt: skip


def process(name, *threads, pid=7, **known):
    return ProcessStacks(pid, name, known.pop("is_driver", False), "rlprof" if threads else "", threads, **known)


def stacks(*others, driver=(MAIN,)):
    return Stacks("ppo_1", "/project", (process("ppo", *driver, is_driver=True), *others))


WORKERS = tuple(process(f"env-{n}", HANGS if n == 2 else IDLE, pid=20 + n) for n in range(4))
WAITS = lane(doing=("collect", "env_wait"), since_s=40.0, waits=True, waits_for=("env-2",))
HUNG = Stuck(0.0, 40.0, "The driver waits.", (WAITS, lane("env-2", kind="process", doing=("env_step",))))


def shown(stuck, found, most=20, width=96):
    panel = stuck_here(stuck, found, width, most, PLAIN)
    assert len(panel.lines) <= most
    assert max(line.cell_len for line in panel.lines) <= width
    return text_of(panel.lines).splitlines()


def test_the_worker_that_hangs_comes_before_the_driver_that_waits_for_it():
    assert shown(HUNG, stacks(*WORKERS)) == [
        "env-2, MainThread (process 22)",
        "  envs.py:9 in Hanging.step: time.sleep(1)",
        "ppo, MainThread (process 7)",
        "  train.py:30 in <module>: main()",
        "  train.py:20 in main: collect(envs)",
        "  train.py:8 in collect: envs.step(actions)",
        "  multiprocessing/connection.py:395 in Connection._recv: chunk = read(handle, remaining)",
    ]


def test_with_little_room_the_innermost_line_of_the_user_comes_first_and_then_the_call_below_it():
    found = stacks(*WORKERS)
    assert shown(HUNG, found, most=5)[2:] == [
        "ppo, MainThread (process 7)",
        "  train.py:8 in collect: envs.step(actions)",
        "  multiprocessing/connection.py:395 in Connection._recv: chunk = read(handle, remaining)",
    ]
    assert shown(HUNG, found, most=4)[3:] == ["  train.py:8 in collect: envs.step(actions)"]
    assert shown(HUNG, found, most=2) == [
        "env-2: envs.py:9 in Hanging.step: time.sleep(1)",
        "ppo: train.py:8 in collect: envs.step(actions)",
    ]
    assert shown(HUNG, found, most=1) == ["env-2: envs.py:9 in Hanging.step: time.sleep(1)"]


@pytest.mark.parametrize("doing", [("learn",), ()], ids=["inside an operation", "outside of all operations"])
def test_both_threads_of_a_deadlock_are_shown(doing):
    main = ThreadStack("MainThread", True, (("/project/train.py", 21, "act", "b.acquire()"),))
    learner = ThreadStack("learner", False, (("/project/train.py", 15, "learn", "a.acquire()"),))
    pool = ThreadStack("pool-1", False, ((f"{STANDARD}/threading.py", 355, "wait", "waiter.acquire()"),))
    lanes = (lane(doing=("collect",)), *([lane("learner", on_driver=False, doing=doing)] if doing else []))
    lines = shown(Stuck(0.0, 40.0, "", lanes), stacks(driver=(main, learner, pool)))
    pairs = [
        ["ppo, learner (process 7)", "  train.py:15 in learn: a.acquire()"],
        ["ppo, MainThread (process 7)", "  train.py:21 in act: b.acquire()"],
    ]
    assert lines == [line for pair in (pairs if doing else pairs[::-1]) for line in pair]


def test_threads_at_the_same_place_are_shown_once():
    workers = tuple(process(f"env-{n}", HANGS, pid=20 + n) for n in range(100))
    lanes = (WAITS, *(lane(f"env-{n}", kind="process", doing=("env_step",)) for n in range(100)))
    lines = shown(Stuck(0.0, 40.0, "", lanes), stacks(*workers), most=6)
    assert lines[:2] == ["env-0, MainThread, and 99 others", "  envs.py:9 in Hanging.step: time.sleep(1)"]
    assert lines[2] == "ppo, MainThread (process 7)"


def test_a_process_that_does_not_answer_says_why():
    stopped = process("env-2", pid=22, problem="The process is stopped.")
    lines = shown(HUNG, stacks(*WORKERS[:2], stopped))
    assert lines[:2] == ["env-2 (process 22)", "  The process is stopped."]
    assert shown(HUNG, stacks(stopped), most=2)[0] == "env-2: The process is stopped."
    long = replace(stopped, problem="The process is stopped, so it cannot answer.")
    assert shown(HUNG, stacks(long), width=36, most=9)[1:3] == ["  The process is stopped, so it", "  cannot answer."]


def test_without_a_line_of_the_user_the_innermost_call_is_shown():
    lines = shown(HUNG, stacks(driver=(replace(IDLE, frames=IDLE.frames[1:]),)))
    assert lines[1].startswith("  multiprocessing/connection.py:395")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_on_their_lines(name):
    thread = ThreadStack(name, True, ((name, 3, name, name), (f"/project/{name}", 4, name, name)))
    found = Stacks("ppo_1", "/project", (process(name, thread, is_driver=True), process(name, problem=name)))
    stuck = Stuck(0.0, 40.0, name, (lane(name), lane(name, kind="process")))
    for look in (PLAIN, Look(ASCII)):
        for width in (26, 56, 96):
            for most in (1, 3, 12):
                lines = stuck_here(stuck, found, width, most, look).lines
                assert len(lines) <= most
                assert max(line.cell_len for line in lines) <= width
                assert all(line.plain.isprintable() and (look is PLAIN or line.plain.isascii()) for line in lines)


@pytest.mark.parametrize(("width", "height", "lines"), [(60, 20, 4), (100, 30, 7), (200, 60, 7)])
def test_the_screen_has_room_for_the_worker_and_the_driver(width, height, lines):
    found = stacks(*WORKERS)
    assert natural_lines(HUNG, found) == 7
    drawn = screen(frame(stuck=HUNG, findings=()), View(stacks=found), Size(width, height), PLAIN).lines
    text = text_of(drawn)
    assert len(drawn) == height
    assert "envs.py:9 in Hanging.step" in text
    assert "train.py:8 in collect" in text
    start = next(place for place, line in enumerate(drawn) if "Stuck here" in line.plain)
    end = next(place for place, line in enumerate(drawn) if line.plain.startswith("╰"))
    assert end - start - 1 >= lines


def test_a_stuck_training_without_stacks_has_no_advice():
    for known in ({"no_finding": "No known problem found."}, {"no_finding": ""}):
        text = text_of(screen(stuck_frame(findings=(), **known), View(), Size(100, 30), PLAIN).lines)
        assert "Advice" not in text
        assert "No known problem" not in text
        assert "No advice" not in text
