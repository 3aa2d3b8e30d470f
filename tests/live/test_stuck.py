"""When a training counts as stuck, and what is said about it, with planted values."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing

import pytest
from live.test_requested_stacks import DEADLOCK, HELD, WORKER, training

from rlprof.analysis.facts import KILLED, RUNNING, UNKNOWN
from rlprof.live.feed import Feed
from rlprof.live.frame import LaneNow
from rlprof.live.process_state import is_stopped
from rlprof.live.stuck import stuck_of, whole_seconds

NOW = 1_790_000_000.0
SECOND = 1e9


def lane(name, *doing, on_driver=False, since=45.0, **more):
    kind = "thread" if on_driver else "process"
    return LaneNow(name, kind, on_driver, alive=True, doing=doing, since_s=since, **more)


def driver(*doing, **more):
    return lane("MainThread", *doing, on_driver=True, **more)


def stuck(*lanes, idle=45.0, age=1.0, iteration=SECOND, state=RUNNING, stopped=False):
    return stuck_of(
        now=NOW, state=state, written=NOW - age, idle_s=idle, iteration_ns=iteration, lanes=lanes, is_stopped=stopped
    )


@pytest.mark.parametrize(
    ("iteration", "idle", "is_stuck"),
    [
        (SECOND, 28, False),
        (SECOND, 30, True),
        (4 * SECOND, 38, False),
        (4 * SECOND, 40, True),
        (0.001 * SECOND, 28, False),
        (3600 * SECOND, 3600, False),
        (None, 290, False),
        (None, 300, True),
    ],
)
def test_a_training_is_stuck_after_ten_iterations_and_at_least_half_a_minute(iteration, idle, is_stuck):
    assert (stuck(idle=idle, iteration=iteration) is not None) is is_stuck


def test_the_time_since_the_last_flush_counts():
    found = stuck(idle=20.0, age=14.0)
    assert (found.seconds, found.since) == (34.0, NOW - 34)
    assert stuck(idle=20.0, age=9.0) is None


def test_a_training_that_ends_no_span_but_whose_idle_time_is_unknown_counts_from_its_last_flush():
    assert stuck(idle=None, age=20.0) is None
    assert stuck(idle=None, age=40.0).since == NOW - 40


@pytest.mark.parametrize("state", [KILLED, "finished", "SIGTERM"])
def test_a_training_that_does_not_run_is_not_stuck(state):
    assert stuck(state=state) is None


def test_a_training_of_which_nothing_was_flushed_is_not_stuck():
    assert stuck_of(now=NOW, state=RUNNING, written=0, idle_s=None, iteration_ns=None, lanes=()) is None


def test_a_training_on_another_machine_is_stuck_only_while_it_still_writes():
    assert stuck(state=UNKNOWN, idle=45.0, age=8.0).seconds == 45.0
    assert stuck(state=UNKNOWN, idle=25.0, age=8.0) is None
    assert stuck(state=UNKNOWN, idle=45.0, age=3600.0) is None, "it may have been killed"


def test_a_stopped_process_is_the_reason():
    found = stuck(driver("update"), idle=1.0, age=60.0, stopped=True)
    assert found.reason == "The process was stopped (SIGSTOP, Ctrl-Z or a paused container)."


def test_a_process_that_does_not_write_holds_the_lock_or_waits_for_a_disk():
    found = stuck(driver("update"), idle=0.5, age=48.0)
    assert found.reason == (
        "The process has not written for 48 s: native code holds Python's GIL, or the disk does not answer."
    )
    assert stuck(idle=0.5, age=125.0).reason.startswith("The process has not written for 125 s:")


@pytest.mark.parametrize(
    ("lanes", "reason"),
    [
        ([driver("rollout", "env_step")], "The driver has been inside env_step for 46 s."),
        ([driver("update", since=900.0)], "The driver has been inside update for 15m01s."),
        ([driver("update", since=0.2)], "The driver is inside update."),
        ([driver("update", since=44.3)], "The driver has been inside update for 46 s."),  # as long as it is stuck
        ([driver("update", since=43.0)], "The driver has been inside update for 44 s."),
        ([driver("update", since=None)], "The driver is inside update."),
        (
            [driver("env_wait", waits=True), lane("env-0", "env_step", since=None)],
            "The driver waits in env_wait for env-0, which is inside env_step.",
        ),
        (
            [driver("env_wait", waits=True, waits_for=("env-3",)), lane("env-3", "env_step"), lane("env-4", "reset")],
            "The driver waits in env_wait for env-3, which has been inside env_step for 46 s.",
        ),
        (
            [driver("env_wait", waits=True), *(lane(f"env-{i}", "env_step", since=40.0 + i) for i in range(4))],
            "The driver waits in env_wait for env-3 and 3 other lanes, which have been inside env_step for at least"
            " 41 s.",
        ),
        (
            [driver("env_wait", waits=True), lane("env-0", "env_step"), lane("env-1", "reset")],
            "The driver waits in env_wait for env-0 and 1 other lane, which have been inside env_step and other"
            " operations for at least 46 s.",
        ),
        (
            [driver("queue_get", waits=True, since=0.1)],
            "The driver waits in queue_get, and no other lane works inside an operation.",
        ),
        (
            [driver("queue_get", waits=True), lane("env-0", "lock_wait", waits=True)],
            "The driver has waited in queue_get for 46 s, and no other lane works inside an operation.",
        ),
        (
            [driver(), lane("loader-1", "load", since=30.0), lane("loader-2", "load")],
            "loader-2 and 1 other lane have been inside load for at least 31 s, and the driver is outside of all"
            " operations.",
        ),
        ([driver()], "The driver is outside of all operations, and no operation has ended for 46 s."),
        ([], "The driver is outside of all operations, and no operation has ended for 46 s."),
    ],
)
def test_the_reason_says_which_lanes_are_inside_what(lanes, reason):
    assert stuck(*lanes).reason == reason


@pytest.mark.parametrize(
    ("seconds", "shown"), [(37.5, "38 s"), (99.4, "99 s"), (99.6, "100 s"), (312.4, "312 s"), (901.2, "15m01s")]
)
def test_times_of_a_stuck_training_are_whole_seconds(seconds, shown):
    assert whole_seconds(seconds) == shown


def test_the_lanes_inside_an_operation_are_listed_the_driver_first():
    ended = LaneNow("env-9", "process", False, alive=False, doing=("env_step",), since_s=99.0)
    found = stuck(lane("env-0", "env_step"), lane("env-1"), ended, driver("env_wait", waits=True))
    assert [one.name for one in found.lanes] == ["MainThread", "env-0"]


def test_a_name_of_any_length_is_cut():
    assert len(stuck(driver("x" * 100_000)).reason) < 200


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_process_is_stopped_until_it_continues():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        try:
            assert not is_stopped(process.pid)
            for sent, expected in ((signal.SIGSTOP, True), (signal.SIGCONT, False)):
                os.kill(process.pid, sent)
                end = time.monotonic() + 30
                while is_stopped(process.pid) is not expected:
                    assert time.monotonic() < end
                    time.sleep(0.01)
        finally:
            process.kill()
    assert not is_stopped(process.pid)


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_real_trainings_that_hang_are_stuck_and_say_why(tmp_path):
    """All at once, because each is stuck only after half a minute."""
    programs = {"deadlock": (DEADLOCK,), "worker": (WORKER, "fork"), "held": (HELD,), "stopped": (DEADLOCK,)}
    feeds, reasons = {}, {}
    with ExitStack() as opened:
        for name, program in programs.items():
            (tmp_path / name).mkdir()
            pid, session = opened.enter_context(training(tmp_path / name, *program))
            feeds[name] = opened.enter_context(closing(Feed(session)))
            if name == "stopped":
                os.kill(pid, signal.SIGSTOP)
        assert [feed.frame().stuck for feed in feeds.values()] == [None] * 4
        end = time.monotonic() + 180
        while len(reasons) < 4:
            assert time.monotonic() < end, reasons
            for name, feed in feeds.items():
                found = feed.frame().stuck
                if found is not None and name not in reasons:
                    assert found.seconds >= 30
                    reasons[name] = found.reason
            time.sleep(0.5)
    assert reasons["stopped"] == "The process was stopped (SIGSTOP, Ctrl-Z or a paused container)."
    assert reasons["held"].endswith("native code holds Python's GIL, or the disk does not answer.")
    assert reasons["deadlock"].startswith("The driver has been inside update for ")
    assert reasons["worker"].startswith("The driver waits in env_wait for env-1, which has been inside env_step for ")
