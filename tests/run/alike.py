"""Runs a program with and without `rlprof run`, for comparisons."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from sessions import facts_of

from rlprof.analysis.facts import Facts

RUN = [str(Path(sys.executable).with_name("rlprof")), "run"]
SECONDS = 300


def execute(command: list[str], folder: Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run in a folder. Sessions go to its `sessions`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RLPROF")}
    environment |= {"RLPROF_DIR": str(folder / "sessions"), "PYTHONHASHSEED": "0", **variables}
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(
        command, cwd=folder, env=environment, input=stdin, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip


def alone(words: list[str], folder: Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return execute([sys.executable, *words], folder, stdin, **variables)


def recorded(words: list[str], folder: Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return execute([*RUN, *words], folder, stdin, **variables)


def printed(stderr: str) -> str:
    """Standard error of the program, without the lines of rlprof."""
    # Python 3.12 and later count rlprof's thread when they warn of a fork: see docs/run.md.
    stderr = re.sub(r"^.*: DeprecationWarning: .* use of fork\(\) .*\n  .*\n", "", stderr, flags=re.MULTILINE)
    stderr = re.sub(r"^.*: RlprofWarning: .*\n  .*\n", "", stderr, flags=re.MULTILINE)
    return re.sub(r"^rlprof: .*\n(?: {8}.*\n)*", "", stderr, flags=re.MULTILINE)


def sessions(folder: Path) -> list[Path]:
    """All sessions, the oldest first."""
    found = folder / "sessions"
    return sorted(found.iterdir(), key=lambda path: (path / "session.db").stat().st_mtime) if found.exists() else []


def only_session(folder: Path) -> Path:
    (session,) = sessions(folder)
    return session


def facts_of_program(folder: Path, program: str, *options: str) -> Facts:
    """Record a program that must succeed without a warning of rlprof."""
    (folder / "train.py").write_text(program)
    done = recorded([*options, "train.py"], folder)
    assert done.returncode == 0, done.stderr
    assert "RlprofWarning" not in done.stderr, done.stderr
    return facts_of(only_session(folder))
