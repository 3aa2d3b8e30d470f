"""What a flush writes about its moment: what every lane does, for how long nothing has ended, and what is planned."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sessions import start_program

from rlprof.errors import RlprofError
from rlprof.ledger import profiler
from rlprof.live.choose import running_session
from rlprof.session.live import LiveSession
from rlprof.session.reader import Session

PATIENCE = 60.0


def until(condition: Callable[[LiveSession], bool], folder: Path) -> None:
    """Wait until a running session in the folder fulfils the condition."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            with LiveSession(running_session(folder)) as session:
                if session.state is not None and condition(session):
                    return
        except RlprofError:
            pass  # not written yet
        time.sleep(0.1)
    raise AssertionError("the session never fulfilled the condition")


def doing(session: LiveSession) -> dict[str, tuple[str | None, bool]]:
    """By lane: the innermost operation, and whether it waits."""
    names, nodes = session.operation_names(), session.node_places()
    found = {}
    for lane in session.lane_rows():
        operation = nodes[lane.node].operation
        found[lane.name] = (names[operation][0] if operation >= 0 else None, bool(lane.waits))
    return found


WORKER = """
import multiprocessing, sys, threading, time
import rlprof

def work(over):
    with rlprof.profile("env_step"):
        over.wait()

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    over = context.Event()
    with rlprof.record("hangs"):
        process = context.Process(target=work, args=(over,), name="env-3")
        process.start()
        with rlprof.profile("rollout"), rlprof.profile("env_wait", wait=True):
            sys.stdin.read()
        over.set()
        process.join()
"""


@pytest.mark.skipif(profiler._core is None, reason="only the C core shares")
def test_a_session_shows_what_the_driver_and_its_workers_do(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(WORKER)
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, env={**os.environ, "RLPROF_DIR": str(tmp_path / "runs")}
    )
    expected = {"main": ("env_wait", True), "env-3": ("env_step", False)}
    try:
        until(lambda session: doing(session) == expected, tmp_path / "runs")
        with LiveSession(running_session(tmp_path / "runs")) as session:
            lanes = {lane.name: lane for lane in session.lane_rows()}
            assert all(0 < lane.since <= session.state.time for lane in lanes.values())
    finally:
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


POLLING = """
import threading, time
import rlprof

with rlprof.record("polls"):
    rlprof.get_profiler().plan(iteration=7, epoch=True, env_step="many")
    for _ in range(20):
        with rlprof.profile("env_step"):
            pass
    never = threading.Event()
    for _ in range(40):
        with rlprof.profile("queue_wait", wait=True):
            never.wait(0.05)
    print("waited")
"""


def test_waits_that_end_again_and_again_are_no_progress(tmp_path):
    process = start_program(POLLING, tmp_path)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    with Session(next(tmp_path.iterdir())) as session:
        assert session.state.idle_ns > 500_000_000  # of two seconds; known to within a flush or two
        assert session.state.planned == {"iteration": 7}
