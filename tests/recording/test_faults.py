"""If a session cannot be written, rlprof warns once, the training goes on, and no recorded data is lost."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from sessions import facts_of, run_program

from rlprof import Profiler, RlprofWarning
from rlprof.api import record

TRAIN = """
import resource, sys, time
from rlprof import get_profiler, profile, record

profiler = get_profiler()
def train(n=50):
    for _ in range(n):
        with profiler.iteration(), profile("env_step"):
            sum(range(2_000))
"""


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = run_program(
        TRAIN + "record('run'); train(); print('trained', profiler.snapshot().iterations)", tmp_path / "file"
    )
    assert done.returncode == 0
    assert done.stdout == "trained 50\n"
    assert done.stderr.count("RlprofWarning") == 1
    assert "no session can be written in" in done.stderr


def test_a_read_only_folder(tmp_path):
    # /proc is read-only to everyone, root too.
    done = run_program(TRAIN + "record('run', dir='/proc/rlprof'); train(); print('trained')", tmp_path)
    assert done.stdout == "trained\n"
    assert "no session can be written in" in done.stderr


def test_a_full_disk(tmp_path):
    """To SQLite, a limit on file sizes looks like a full disk. Once it is lifted, everything recorded is written."""
    program = f"""{TRAIN}
recording = record("run")
recording.flush()
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
train()
recording.flush()
train()
recording.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
recording.stop()
print("trained")
"""
    done = run_program(program, tmp_path)
    assert done.stdout == "trained\n", done.stderr
    assert done.stderr.count("RlprofWarning") == 1
    assert "cannot be written" in done.stderr
    (session,) = tmp_path.iterdir()
    facts = facts_of(session)
    assert facts.operation("env_step").calls == 100
    assert sum(facts.series.calls["env_step"]) == 100


@pytest.mark.long
def test_a_disk_that_stays_full(tmp_path):
    program = f"""{TRAIN}
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
recording = record("run", timeline=1 << 20)
for _ in range(30):
    train(200)
    recording.flush()
recording.stop()
print("trained", profiler.snapshot().account("env_step").calls)
"""
    done = run_program(program, tmp_path)
    assert done.stdout == "trained 6000\n", done.stderr
    assert "Traceback" not in done.stderr
    (session,) = tmp_path.iterdir()
    assert facts_of(session).operation("env_step").calls < 6_000  # as much as there was room for


def test_a_locked_file(tmp_path):
    profiler = Profiler()
    recording = record("run", dir=tmp_path, profiler=profiler)
    recording._flusher.writer._connection.execute("PRAGMA busy_timeout = 50")
    recording._wake.set()  # no flush but those of the test
    recording._thread.join()
    with profiler.iteration(), profiler.profile("env_step"):
        pass
    other = sqlite3.connect(recording.folder / "session.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.warns(RlprofWarning, match="cannot be written"):
        recording.flush()
    with profiler.iteration(), profiler.profile("env_step"):
        pass
    recording.flush()  # the second failure does not warn: warnings are errors here
    other.execute("ROLLBACK")
    other.close()
    recording.stop()
    facts = facts_of(recording.folder)
    assert facts.operation("env_step").calls == 2
    assert sum(facts.series.calls["env_step"]) == 2


def test_a_session_that_is_deleted_while_it_is_written(tmp_path):
    program = f"""{TRAIN}
import shutil
recording = record("run")
recording.flush()
shutil.rmtree(recording.folder)
train()
recording.stop()
print("trained")
"""
    done = run_program(program, tmp_path)
    assert done.stdout == "trained\n", done.stderr
    assert "Traceback" not in done.stderr


def test_a_deleted_session_is_noticed_while_the_training_goes_on(tmp_path):
    profiler = Profiler()
    with record("run", dir=tmp_path, profiler=profiler) as recording:
        shutil.rmtree(recording.folder)
        with pytest.warns(RlprofWarning, match="was deleted"):
            for _ in range(10):
                recording.flush()


def test_a_watcher_that_fails_is_named_once(tmp_path):
    profiler = Profiler()
    with pytest.warns(RlprofWarning, match="broken failed") as caught:
        with record("run", dir=tmp_path, profiler=profiler) as recording:

            def broken(batch):
                raise RuntimeError("no")

            recording.watchers.append(broken)
            recording.flush()
            recording.flush()
    assert len(caught) == 1
    assert (Path(recording.folder) / "summary.txt").exists()
