"""`rlprof capture` on sessions whose process has ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from cli.test_commands import rlprof
from sessions import INFO, Written, run_program

from rlprof.session.process import identity_of, runs
from rlprof.session.reader import Session


@pytest.fixture
def other():
    """An unrelated process."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def killed(folder, **info):
    """A session whose process was killed, so it has no end."""
    written = Written(folder)
    written.work("env_step", 1_000)
    written.flush()
    written.writer.describe(replace(INFO, **info))
    written.writer.close()
    return folder


def refused(folder):
    done = rlprof("capture", folder, "--no-wait")  # an earlier rlprof would wait without end
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not running any more" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "requests").exists()


@pytest.mark.long
def test_a_process_that_reuses_the_pid_of_a_killed_one_is_not_the_recorded_process(tmp_path, other):
    boot, _, ticks = identity_of(other.pid).rpartition("/")
    for identity in (f"{boot}/{int(ticks) - 1}", f"00000000-0000-0000-0000-000000000000/{ticks}"):
        folder = tmp_path / identity[:3] / ticks
        refused(killed(folder, pid=other.pid, process=identity, started=time.time_ns()))
        shutil.rmtree(folder)


def test_a_process_that_is_younger_than_the_session_is_not_the_recorded_process(tmp_path, other):
    refused(killed(tmp_path / "run", pid=other.pid, process="", started=time.time_ns() - 3600 * 10**9))


def test_a_zombie_does_not_run(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with process:
        identity = identity_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie from here on
        refused(killed(tmp_path / "run", pid=process.pid, process=identity, started=time.time_ns()))


def test_the_recorded_process_runs(other):
    assert runs(other.pid, identity_of(other.pid), time.time_ns())
    assert runs(os.getpid(), "", time.time_ns()), "of an old session"
    assert identity_of(other.pid) != identity_of(os.getpid())


def test_a_session_knows_its_process(tmp_path):
    program = """
from rlprof import record
from rlprof.session.process import identity_of
import os
with record("run"):
    print(identity_of(os.getpid()))
"""
    shown = run_program(program, tmp_path).stdout.strip()
    (folder,) = tmp_path.iterdir()
    with Session(folder) as session:
        assert session.info.process == shown != ""
