"""`rlprof list`: planted sessions, in any state and condition."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import replace

import pytest
import sessions
from click.testing import CliRunner
from sessions import INFO, Written

from rlprof.cli.main import cli
from rlprof.list.sessions import list_sessions, program_of
from rlprof.list.text import short_state, to_text
from rlprof.session.folder import find_database
from rlprof.session.process import identity_of

MS = 1_000_000


def plant(folder, name, monkeypatch=None, **info):
    if info:
        monkeypatch.setattr(sessions, "INFO", replace(INFO, **info))
    written = Written(folder / name)
    for _ in range(10):
        with written.fake.profiler.iteration():
            written.work("env_step", 10 * MS)
            written.fake.profiler.add_steps(8)
    return written


def by_folder(parent, limit=20):
    return {one.folder: one for one in list_sessions(parent, limit).sessions}


def test_the_newest_comes_first_and_has_its_figures(tmp_path):
    for name in ("b_20260101-120000", "a_20260102-120000", "c_20260101-120000-2"):
        plant(tmp_path, name).end()
    found = list_sessions(tmp_path, 20)
    assert [one.folder for one in found.sessions] == ["a_20260102-120000", "c_20260101-120000-2", "b_20260101-120000"]
    newest = found.sessions[0]
    assert (newest.state, newest.name, newest.wall_ns) == ("finished", "planted", 100 * MS)
    assert newest.steps_per_second == pytest.approx(800)
    assert (newest.started, newest.program) == (INFO.started, "train.py --seed 1")
    assert found.older == 0


def test_the_state_tells_a_running_training_from_a_killed_one(tmp_path, monkeypatch):
    here = {"host": platform.node()}
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    plant(tmp_path, "running", monkeypatch, **here, pid=os.getpid(), process=identity_of(os.getpid())).flush()
    plant(tmp_path, "killed", monkeypatch, **here, pid=ended.pid, process="gone").flush()
    plant(tmp_path, "elsewhere", monkeypatch, host="another", pid=1, process="x").flush()
    plant(tmp_path, "failed").end("ValueError: no")
    states = {name: one.state for name, one in by_folder(tmp_path).items()}
    assert states == {
        "running": "running", "killed": "killed", "elsewhere": "running or killed", "failed": "ValueError: no"
    }  # fmt: skip


def test_a_damaged_session_is_listed_with_the_reason_and_hides_no_other(tmp_path):
    plant(tmp_path, "good_20260101-120000").end()
    for name, content in (("text_20260101-120001", b"no database" * 100), ("empty_20260101-120002", b"")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "session.db").write_bytes(content)
    (tmp_path / "no session").mkdir()
    found = by_folder(tmp_path)
    assert {name: one.state for name, one in found.items()} == {
        "empty_20260101-120002": "unreadable", "text_20260101-120001": "unreadable", "good_20260101-120000": "finished",
    }  # fmt: skip
    assert found["empty_20260101-120002"].problem == "is empty: the run was stopped before its first flush"
    text = " ".join(to_text(list_sessions(tmp_path, 20)).split())
    assert "text_20260101-120001 is not an SQLite file, so no session." in text
    assert str(tmp_path / "text") not in text


def test_the_limit_opens_no_more_and_counts_the_rest(tmp_path):
    plant(tmp_path, "new_20260102-120000").end()
    for number in range(3):
        (tmp_path / f"old_20260101-12000{number}").mkdir()
        (tmp_path / f"old_20260101-12000{number}" / "session.db").write_bytes(b"")
    found = list_sessions(tmp_path, 1)
    assert ([one.state for one in found.sessions], found.older) == (["finished"], 3)
    assert "3 older sessions not shown (--limit)" in " ".join(to_text(found).split())


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_narrow_terminal_drops_columns_and_keeps_the_names(tmp_path, columns):
    plant(tmp_path, "training_of_today_20260102-120000").end()
    lines = to_text(list_sessions(tmp_path, 20), columns).splitlines()
    assert lines[1].startswith("training_of_today_20260102-120000")
    assert all(len(line) <= columns for line in lines[:2])
    assert ("train.py --seed 1" in lines[1]) == (columns == 120)


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (("/usr/bin/python3", "-u", "/home/me/train.py", "--name", "a b"), "train.py --name 'a b'"),
        (("python", "-m", "package.train", "-x"), "-m package.train -x"),
        (("torchrun", "train.py"), "torchrun train.py"),
        ((), ""),
    ],
)
def test_the_program_is_the_command_without_its_interpreter(command, program):
    assert program_of(command) == program


def test_the_command_reads_the_folder_of_sessions_and_writes_json(tmp_path, monkeypatch):
    monkeypatch.setenv("RLPROF_DIR", str(tmp_path / "runs"))
    nothing = CliRunner().invoke(cli, ["list"])
    assert (nothing.exit_code, "There is no session in" in nothing.output) == (0, True)
    plant(tmp_path / "runs", "one_20260101-120000").end()
    plant(tmp_path / "other", "two_20260101-120000").end()
    assert "one_20260101-120000" in CliRunner().invoke(cli, ["list"]).output
    for words in (["--json"], ["--format", "json"], ["-o", str(tmp_path / "list.json")]):
        shown = CliRunner().invoke(cli, ["list", "--dir", str(tmp_path / "other"), *words])
        text = (tmp_path / "list.json").read_text() if "-o" in words else shown.stdout
        (one,) = json.loads(text)["sessions"]
        assert (one["folder"], one["problem"]) == ("two_20260101-120000", None)


@pytest.mark.parametrize(
    ("state", "short"),
    [
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied", "failed (RuntimeError)"),
        ("ValueError", "failed (ValueError)"),
        ("exit 1: no reward", "exit 1"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("SIGTERM", "SIGTERM"),
        ("running or killed", "running or killed"),
    ],
)
def test_a_state_is_short(state, short):
    assert short_state(state) == short


@pytest.mark.parametrize("columns", [40, 120])
def test_a_long_name_is_never_cut(columns, tmp_path):
    name = f"{'a_training_with_a_long_name_' * 4}20260101-120000"
    plant(tmp_path, name).end()
    assert name in to_text(list_sessions(tmp_path, 20), columns).splitlines()[1]


def test_a_name_from_the_list_is_found_from_anywhere(tmp_path, monkeypatch):
    path = plant(tmp_path / "runs", "one_20260101-120000").end()
    monkeypatch.setenv("RLPROF_DIR", str(tmp_path / "runs"))
    monkeypatch.chdir("/")
    assert find_database("one_20260101-120000") == path
