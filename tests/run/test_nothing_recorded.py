"""If nothing was recorded, `rlprof run` reports it when the command has ended, and ends as the command did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest
from alike import RUN, execute, only_session, recorded, sessions
from sessions import facts_of


@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-sE"])
def test_a_python_that_does_not_load_rlprof_is_reported_with_a_remedy(flag, tmp_path):
    (tmp_path / "train.py").write_text("print('ran'); raise SystemExit(3)")
    done = recorded(["--", sys.executable, flag, "train.py"], tmp_path)
    assert (done.stdout, done.returncode) == ("ran\n", 3)
    (line,) = done.stderr.splitlines()
    assert line.startswith("rlprof: nothing was recorded, because python")
    assert f"; leave out -{flag[-1]}" in line
    assert ("or put `import rlprof.auto` at the top of the script" in line) == (flag != "-S")
    assert sessions(tmp_path) == []


def test_the_remedy_helps(tmp_path):
    (tmp_path / "train.py").write_text("import rlprof.auto; print('ran')")
    done = recorded(["--", sys.executable, "-I", "train.py"], tmp_path)
    assert done.stdout == "ran\n"
    assert "nothing was recorded" not in done.stderr
    assert facts_of(only_session(tmp_path)).session.name == "train"


def test_a_command_that_runs_no_python_is_reported(tmp_path):
    done = recorded(["--", "sh", "-c", "echo ran; exit 4"], tmp_path)
    assert (done.stdout, done.returncode) == ("ran\n", 4)
    (line,) = done.stderr.splitlines()
    assert line.startswith("rlprof: nothing was recorded, because `sh -c 'echo ran; exit 4'` ran no Python that loads ")
    assert recorded(["--quiet", "--", "true"], tmp_path).stderr == ""
    assert os.listdir(tmp_path) == []


@pytest.mark.long
def test_nothing_is_printed_for_a_recorded_command(tmp_path):
    (tmp_path / "train.py").write_text("print('ran')")
    done = recorded(["--quiet", "--", sys.executable, "train.py"], tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("ran\n", "", 0)
    inside = recorded(["--quiet", "--", *RUN, "--", sys.executable, "train.py"], tmp_path)
    assert "nothing was recorded" not in inside.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV])
def test_rlprof_ends_by_the_same_signal_as_the_command(number, tmp_path):
    done = recorded(["--", "sh", "-c", f"kill -{int(number)} $$"], tmp_path)
    assert done.returncode == -number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_reaches_the_command(number, tmp_path):
    (tmp_path / "wait.py").write_text(
        "import signal, sys\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(7))\n"
        "print('waits', flush=True)\nwhile True: signal.pause()\n"
    )
    program = (
        "import signal, os, sys\n"
        "for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1): signal.signal(n, signal.SIG_DFL)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\nos.execvp(sys.argv[1], sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", program, *RUN, "--", sys.executable, "-S", "wait.py"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "waits\n"
        process.send_signal(number)
        assert process.wait(60) == 7
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process does not learn that its parent was killed")
def test_the_command_ends_when_rlprof_is_killed(tmp_path):
    process = subprocess.Popen(
        [*RUN, "--", "sh", "-c", "echo $$; exec sleep 1000"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path,
    )  # fmt: skip
    command = psutil.Process(int(process.stdout.readline()))
    process.kill()
    process.communicate()  # returns when the command, too, has closed its output
    command.wait(60)


def test_files_and_standard_input_are_passed_on(tmp_path):
    done = recorded(["--", "sh", "-c", "cat; cat <&3"], tmp_path, "given")
    assert done.stdout == "given"
    command = ["sh", "-c", 'exec 3<<X\nthree\nX\nexec "$@"', "sh", *RUN, "--", "sh", "-c", "cat; cat <&3"]
    assert execute(command, tmp_path, "given ").stdout == "given three\n"
