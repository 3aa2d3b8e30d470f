"""A training that is stopped for a while, and one that only has no core."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recording.worker_trainings import only_session, start_training
from sessions import report_of

from rlprof.ledger import profiler as module
from rlprof.session.reader import Session

pytestmark = pytest.mark.skipif(
    module._core is None or not Path("/proc/self/schedstat").exists(), reason="the C core on Linux notices"
)

STOPS = 4
SECONDS = 1.2
CLOSE = 0.4
"""Tolerance for the length of a stop in seconds. rlprof knows it to 0.05 s, but on a busy machine processes also stop
and continue late."""

TRAINING = """
recording = record("run")
{make}
while not os.path.exists("over"):
    with profiler.iteration():
        {step}
        with profile("policy_forward"):
            sum(range(20_000))
        profiler.add_steps(1)
        if not os.path.exists("begun"):
            open("begun", "w").close()
{close}
recording.stop()
"""

PLACES = {
    "computing": ("", "with profile('env_step'): sum(range(200_000))", ""),
    "waiting": ("", "with profile('env_wait', wait=True): time.sleep(0.01)", ""),
    "workers": ("envs = Envs(recording, [0.005] * 2)", "envs.step()", "envs.close()"),
}


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stop_for(pids: list[int], seconds: float) -> float:
    """The real length in seconds."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    while any("State:\tT" not in Path(f"/proc/{pid}/status").read_text() for pid in pids):
        time.sleep(0.001)
    began = time.monotonic()
    time.sleep(seconds)
    spent = time.monotonic() - began
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    return spent


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_every_stop_is_in_an_account_of_its_own_and_no_operation_gets_it(tmp_path, place):
    make, step, close = PLACES[place]
    process = start_training(tmp_path, TRAINING.format(make=make, step=step, close=close))
    try:
        wait_for(tmp_path / "begun")
        planted = 0.0
        for _ in range(STOPS):
            time.sleep(0.5)
            planted += stop_for(family(process.pid), SECONDS)
        time.sleep(0.5)
        (tmp_path / "over").touch()
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, "")
    report = report_of(only_session(tmp_path))
    facts = report.facts
    with Session(only_session(tmp_path)) as session:
        suspended = session.snapshot().account("suspended")
    assert suspended.ledger_ns / 1e9 == pytest.approx(planted, abs=STOPS * CLOSE)
    assert suspended.cpu_ns == 0
    assert suspended.calls == STOPS
    assert facts.operation("suspended") is None, "it is no part of the training"
    assert facts.progress.suspended_ns == suspended.ledger_ns
    # No span has lasted through it, and no iteration.
    longest = max(item.max_ns for item in facts.operations if item.max_ns)
    assert longest / 1e9 < SECONDS - CLOSE
    assert facts.progress.iteration_ns.max_ns / 1e9 < SECONDS - CLOSE
    progress = facts.progress
    beside = progress.startup_ns + progress.after_ns + progress.warm_up_ns + suspended.ledger_ns
    assert progress.training_ns + beside == progress.wall_ns
    training = facts.progress.training_ns / 1e9
    assert facts.progress.steps_per_second == pytest.approx(facts.progress.steps / training)
    assert all("suspended" not in finding.operations for finding in report.findings.findings)


@pytest.mark.long
def test_a_process_without_a_core_is_not_stopped(tmp_path):
    """With the lowest priority on a shared core it gets hardly any time, and its threads wake up much too late."""
    core = min(os.sched_getaffinity(0))
    busy = [
        subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{core}])\nwhile True: pass"])
        for _ in range(2)
    ]
    make = f"os.sched_setaffinity(0, [{core}])\nos.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))"
    step = "with profile('env_step'): sum(range(20_000))"
    try:
        process = start_training(tmp_path, TRAINING.format(make=make, step=step, close=""))
        try:
            wait_for(tmp_path / "begun")
            time.sleep(3)
            for loop in busy:
                loop.kill()
            (tmp_path / "over").touch()
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    assert (process.returncode, err) == (0, "")
    assert report_of(only_session(tmp_path)).facts.operation("suspended") is None
