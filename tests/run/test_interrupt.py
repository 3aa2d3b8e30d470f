"""Ctrl-C while rlprof starts in a program ends that program as it would have without rlprof."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from alike import RUN, execute, recorded

PROGRAM = "import rlprof\nprint('ran')\n"

SIGNAL = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
"""A module that is imported while rlprof starts."""

PROBES = "interrupts:PROBE,rlprof.probes.gymnasium:PROBE"


def plant(folder: Path) -> dict[str, str]:
    """A probe that interrupts the process which loads it."""
    (folder / "plain").mkdir()
    (folder / "plain" / "interrupts.py").write_text(f"{SIGNAL}from rlprof.probes.gymnasium import PROBE\n")
    return {"PYTHONPATH": str(folder / "plain"), "RLPROF_PROBES": PROBES}


def fake_git(folder: Path) -> dict[str, str]:
    """A git command that interrupts the process that calls it. That comes earlier, while the session is created."""
    (folder / ".git").mkdir()
    (folder / "bin").mkdir()
    (folder / "bin" / "git").write_text("#!/bin/sh\nkill -INT $PPID\n")
    (folder / "bin" / "git").chmod(0o755)
    return {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.long
@pytest.mark.parametrize("planted", [plant, fake_git], ids=["probes", "session"])
@pytest.mark.parametrize("kind", ["script", "module", "command", "stdin"])
def test_ctrl_c_while_rlprof_starts_is_a_keyboard_interrupt_of_the_program(planted, kind, tmp_path):
    variables = planted(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    words = {
        "script": ["train.py"], "module": ["-m", "train"], "command": ["--", sys.executable, "-c", PROGRAM],
        "stdin": ["-"],
    }  # fmt: skip
    done = recorded(words[kind], tmp_path, PROGRAM if kind == "stdin" else "", **variables)
    assert "Fatal Python error" not in done.stderr, done.stderr
    assert "KeyboardInterrupt" in done.stderr
    traceback = done.stderr.partition("Traceback")[2].partition("KeyboardInterrupt")[0]
    assert "/rlprof/" not in traceback, done.stderr
    assert done.returncode == -signal.SIGINT, done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["run", "report"])
def test_ctrl_c_while_the_command_itself_starts_is_silent(command, tmp_path):
    """rlprof imports click before it knows what to do."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "click.py").write_text(SIGNAL)
    (tmp_path / "train.py").write_text(PROGRAM)
    done = execute([RUN[0], command, "train.py"], tmp_path, PYTHONPATH=str(tmp_path / "plain"))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", -signal.SIGINT)


def test_ctrl_c_before_python_has_loaded_rlprof_waits_for_the_program(tmp_path):
    """The signal is sent before the program's Python starts, and arrives in the program."""
    (tmp_path / "train.py").write_text(PROGRAM)
    program = (
        "import os, signal; from rlprof.run import command; kill = os.execvpe\n"
        "os.execvpe = lambda *words: (os.kill(os.getpid(), signal.SIGINT), kill(*words))\n"
        f"command.become({[sys.executable, 'train.py']!r}, {{}}, is_python=True)"
    )
    done = execute([sys.executable, "-c", program], tmp_path)
    assert (done.stdout, done.returncode) == ("", -signal.SIGINT), done.stderr
    traceback = done.stderr.partition("rlprof: ")[0].splitlines()
    assert traceback[1:] == [f'  File "{tmp_path / "train.py"}", line 1, in <module>', "    import rlprof",
                             "KeyboardInterrupt"]  # fmt: skip


def test_a_program_that_ignores_ctrl_c_is_not_interrupted(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    ignoring = "trap '' INT; exec \"$@\""
    done = execute(["sh", "-c", ignoring, "sh", *RUN, "train.py"], tmp_path, **plant(tmp_path))
    assert (done.stdout, done.returncode) == ("ran\n", 0), done.stderr


def test_signals_are_not_blocked_in_the_program(tmp_path):
    (tmp_path / "train.py").write_text("import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))")
    assert recorded(["train.py"], tmp_path).stdout == "set()\n"
