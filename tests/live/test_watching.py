"""Alerts of real trainings: a line, a mark and a command, and a watcher that is no part of the training."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlprof.errors import RlprofError
from rlprof.session.folder import sessions_in
from rlprof.session.process import stat_of
from rlprof.session.reader import Session

PATIENCE = 90.0
TRAINING = """
import time
from rlprof import add_steps, iteration, profile

while True:
    with iteration(), profile("env_step"):
        time.sleep(0.02)
        add_steps(1)
"""


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.1)


def marks_of(folder: Path) -> list[str]:
    try:
        with Session(sessions_in(folder)[0]) as session:
            return [mark.text for mark in session.marks() if mark.kind == "alert"]
    except (RlprofError, IndexError):
        return []


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if int(stat_of(int(entry.name))[1]) == pid:
                    found.append(int(entry.name))
            except (OSError, IndexError):
                continue  # it has just ended
    return found


@pytest.fixture
def start(tmp_path):
    """Start a recorded training with these options. It is killed at the end of the test."""
    started = []

    def run(*options: str) -> subprocess.Popen[str]:
        (tmp_path / "train.py").write_text(TRAINING)
        process = subprocess.Popen(
            [sys.executable, "-m", "rlprof", "run", *options, "train.py"],
            cwd=tmp_path, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            env={**os.environ, "RLPROF_DIR": str(tmp_path / "runs")},
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_an_alert_is_a_line_a_mark_and_a_command(start, tmp_path):
    command = 'printf "%s|%s\\n" "$RLPROF_ALERT" "$RLPROF_ALERT_SESSION" >> told.txt; echo told'
    process = start("--alert", "memory > 1MB", "--alert-command", command)
    told = tmp_path / "told.txt"
    until(lambda: marks_of(tmp_path / "runs"))
    (text,) = marks_of(tmp_path / "runs")
    until(told.exists)
    assert told.read_text() == f"{text}|{sessions_in(tmp_path / 'runs')[0]}\n"
    assert text.startswith("memory is ")
    assert text.endswith(" MB, above 1.00 MB")
    process.send_signal(signal.SIGTERM)
    error = process.communicate(timeout=PATIENCE)[1]  # ends with the watcher, which has the same standard error
    assert process.returncode == -signal.SIGTERM
    assert f"rlprof: alert: train: {text}.\ntold\n" in error


@pytest.mark.long
def test_a_killed_training_is_reported_and_marked_by_the_watcher(start, tmp_path):
    process = start("--alert", "killed", "--alert", "failed")
    until(lambda: sessions_in(tmp_path / "runs") and any((tmp_path / "runs").glob("*/stacks/*.json")))
    process.kill()
    error = process.communicate(timeout=PATIENCE)[1]
    assert error.endswith("rlprof: alert: train: the training was killed.\n")
    assert marks_of(tmp_path / "runs") == ["the training was killed"]


@pytest.mark.long
def test_the_watcher_is_no_child_of_the_training(start, tmp_path):
    process = start("--alert", "memory > 1MB")
    until(lambda: marks_of(tmp_path / "runs"))
    assert children_of(process.pid) == []


@pytest.mark.long
def test_a_wrong_condition_ends_before_the_training(start):
    process = start("--alert", "memory > 20")
    error = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 2
    assert error == "rlprof: `memory > 20` needs a unit. Units of memory: KB, MB, GB, TB.\n"
