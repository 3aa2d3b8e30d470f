"""`rlprof top` and `rlprof run --top` in a real terminal, with trainings that really run."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing

import psutil
import pytest
from live.test_requested_stacks import WORKER
from live.test_requested_stacks import training as hanging
from terminal import SECONDS, Terminal, needs_tmux

from rlprof.session.reader import Session

pytestmark = [pytest.mark.long, needs_tmux]

TRAINING = """
import os, sys, time
import rlprof
from rlprof import get_profiler, profile

print("size", *os.get_terminal_size(), flush=True)
turns = int(sys.argv[1])
try:
    for turn in range(turns):
        with get_profiler().iteration():
            with profile("env_step"):
                time.sleep(0.03)
            with profile("backward"):
                time.sleep(0.01)
            get_profiler().add_steps(32)
        if turn % 20 == 0:
            print(f"\\x1b[32mturn\\x1b[0m {turn}", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
print("the end", flush=True)
"""


@pytest.fixture
def terminal(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    made = Terminal(tmp_path, 100, 30)
    yield made
    made.close()


def only_session(folder):
    (found,) = (folder / "sessions").iterdir()
    return found


def fills(terminal, width, height):
    """True once the dashboard has these measures."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        lines = terminal.lines()
        if len(lines) == height and len(lines[0]) == width and lines[0].startswith("╭─ ") and lines[0].endswith("─╮"):
            return True
        time.sleep(0.05)
    return False


def test_a_training_runs_below_the_dashboard_and_its_summary_stays(terminal, tmp_path):
    terminal.run(["run", "--top", "train.py", "150"])
    terminal.wait_for("train", "Output", "size 100 8", "turn 20")
    shown = terminal.wait_for("steps/s now", "env_step", "backward")
    assert "^C interrupt" in shown
    shown = terminal.wait_for("finished", "The training has finished.", "the end", "rlprof: Details: rlprof report")
    assert fills(terminal, 100, 30)
    assert "150 iterations" in shown
    terminal.press("q")
    shown = terminal.wait_for("code=0=")
    session = only_session(tmp_path)
    assert "the end" in shown
    assert "rlprof: Details: rlprof report" in shown
    assert f"rlprof: Output: sessions/{session.name}/output.log" in shown
    log = (session / "output.log").read_bytes()
    assert log.startswith(b"size 100 8\n\x1b[32mturn\x1b[0m 0\n\x1b[32mturn\x1b[0m 20\n")
    assert b"the end\nrlprof: " in log
    assert b"\r" not in log
    with Session(session) as recorded:
        assert [artifact.path for artifact in recorded.artifacts() if artifact.kind == "output"] == ["output.log"]
        assert recorded.end.how in ("finished", "ended")


def test_ctrl_c_goes_to_the_training_and_its_exit_code_comes_back(terminal, tmp_path):
    terminal.run(["run", "--top", "train.py", "100000"])
    terminal.wait_for("turn 20", "steps/s now")
    terminal.press("C-c")
    terminal.wait_for("interrupted", "The training ended with exit code 7.")
    terminal.press("q")
    terminal.wait_for("code=7=")
    with Session(only_session(tmp_path)) as recorded:
        assert recorded.end.how == "exit 7"


def test_q_asks_before_it_ends_a_running_training(terminal):
    terminal.run(["run", "--top", "train.py", "100000"])
    terminal.wait_for("turn 20", "steps/s now")
    terminal.press("q")
    terminal.wait_for("Quitting ends the training")
    terminal.press("n")
    terminal.wait_for("turn 60", gone=["Quitting ends"])
    terminal.press("C-q")
    terminal.wait_for("Quitting ends the training")
    terminal.press("y")
    shown = terminal.wait_for("code=7=")
    assert "interrupted" in shown


@pytest.mark.parametrize("key", ["q", "C-q"])
def test_the_key_that_asked_means_yes_if_it_is_pressed_again(key, terminal):
    terminal.run(["run", "--top", "train.py", "100000"])
    terminal.wait_for("turn 20", "steps/s now")
    terminal.press(key)
    terminal.wait_for("Quitting ends the training", "y or q yes")
    terminal.press(key)
    assert "interrupted" in terminal.wait_for("code=7=")


def test_a_script_that_fails_at_once_shows_its_output_and_exits_with_its_code(terminal, tmp_path):
    (tmp_path / "train.py").write_text("import no_such_module\n")
    terminal.run(["run", "--top", "train.py"])
    shown = terminal.wait_for("code=1=")
    assert "ModuleNotFoundError: No module named 'no_such_module'" in shown
    assert "no session was kept" in shown
    assert list((tmp_path / "sessions").iterdir()) == []


def test_a_command_in_which_nothing_is_recorded_says_why(terminal):
    terminal.run(["run", "--top", "--", "sh", "-c", "echo hello; exit 4"])
    shown = terminal.wait_for("code=4=")
    assert "hello" in shown
    assert "rlprof: nothing was recorded, because" in shown


def test_the_signal_that_ends_the_training_ends_the_command(terminal, tmp_path):
    (tmp_path / "train.py").write_text(f"import os\n{TRAINING}\nos.kill(os.getpid(), 9)\n")
    terminal.run(["run", "--top", "train.py", "60"])
    terminal.wait_for("killed", "The training was ended by SIGKILL.")
    terminal.press("q")
    terminal.wait_for(f"code={128 + signal.SIGKILL}=")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_for_the_command_reaches_the_training(number, terminal, tmp_path):
    terminal.run(["run", "--top", "train.py", "100000"])
    terminal.wait_for("turn 20", "steps/s now")
    (command,) = [process for process in psutil.process_iter() if is_command(process, tmp_path)]
    command.send_signal(number)
    terminal.wait_for(f"code={128 + number}=")
    with Session(only_session(tmp_path)) as recorded:
        assert recorded.end.how == number.name


def test_nothing_is_left_when_the_terminal_is_closed_after_the_training(terminal, tmp_path):
    terminal.run(["run", "--top", "train.py", "5"])
    terminal.wait_for("The training has finished.")
    (command,) = [process for process in psutil.process_iter() if is_command(process, tmp_path)]
    terminal.close()
    command.wait(SECONDS)


def is_command(process, folder):
    try:
        return process.cwd() == str(folder) and process.cmdline()[2:4] == ["run", "--top"]
    except psutil.Error:
        return False


def test_a_reference_training_runs_below_the_dashboard_too(terminal, tmp_path):
    terminal.run(["train", "petri", "--sanctum", "iterations=2", "envs=2"])
    terminal.wait_for("petri", "Output")
    terminal.wait_for("The training has finished.", "petri: ")
    terminal.press("q")
    assert "rlprof: Output: sessions/petri_" in terminal.wait_for("code=0=")
    assert b"petri: " in (only_session(tmp_path) / "output.log").read_bytes()


def test_the_dashboard_and_the_pane_follow_a_resize(terminal, tmp_path):
    handler = "lambda *_: print('now', *os.get_terminal_size(), flush=True)"
    program = TRAINING.replace("turns =", f"import signal; signal.signal(signal.SIGWINCH, {handler})\nturns =")
    (tmp_path / "train.py").write_text(program)
    terminal.run(["run", "--top", "train.py", "100000"])
    terminal.wait_for("size 100 8", "env_step")
    terminal.resize(60, 20)
    terminal.wait_for("now 60 5")
    terminal.wait_for("env_step", "q quit")
    assert fills(terminal, 60, 20)
    terminal.resize(120, 40)
    terminal.wait_for("now 120 11")
    assert fills(terminal, 120, 40)
    terminal.press("C-c")
    terminal.wait_for("exit code 7")


@pytest.fixture
def training(tmp_path):
    """A training that runs in the background, as long as the test."""
    import subprocess

    from terminal import RLPROF

    (tmp_path / "train.py").write_text(TRAINING.replace("*os.get_terminal_size()", "1, 2"))
    environment = {**os.environ, "RLPROF_DIR": str(tmp_path / "sessions")}
    process = subprocess.Popen(
        [RLPROF, "run", "--quiet", "train.py", "100000"], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + SECONDS
    while not list(tmp_path.glob("sessions/*/session.db")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("size", [(100, 30), (60, 20)])
def test_top_finds_the_running_training_and_says_when_it_is_killed(size, training, tmp_path):
    terminal = Terminal(tmp_path, *size)
    try:
        terminal.run(["top"])
        terminal.wait_for("train", "● running", "steps/s now", "env_step", "q quit")
        assert fills(terminal, *size)
        terminal.press("o")
        terminal.wait_for("Operations by share now")
        terminal.press("Down", "Enter")
        terminal.wait_for("Duration of a call", "esc closes")
        terminal.press("Escape")
        terminal.wait_for("q quit", gone=["Duration of a call"])
        terminal.press("Left")
        terminal.wait_for("Iteration ")
        training.kill()
        terminal.wait_for("○ killed")
        terminal.press("q")
        terminal.wait_for("code=0=")
    finally:
        terminal.close()


def test_s_shows_where_the_training_is_and_r_writes_the_report(training, tmp_path):
    terminal = Terminal(tmp_path, 100, 30)
    try:
        terminal.run(["top"])
        terminal.wait_for("env_step")
        terminal.press("s")
        terminal.wait_for("Python stacks", "MainThread", "train.py:")
        terminal.press("Escape")
        terminal.wait_for("q quit")
        terminal.press("r")
        terminal.wait_for("The report is sessions/")
        (page,) = tmp_path.glob("sessions/*/report.html")
        assert "env_step" in page.read_text()
        terminal.press("q")
        terminal.wait_for("code=0=")
    finally:
        terminal.close()


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "vt100"}, {"PYTHONIOENCODING": "ascii"}])
def test_the_dashboard_works_without_colour_or_unicode(variables, training, tmp_path):
    terminal = Terminal(tmp_path, 100, 30)
    name, value = next(iter(variables.items()))
    try:
        terminal.press(f"export {name}={value}", "Enter")
        terminal.run(["top"])
        terminal.wait_for("env_step", "steps/s now", "q quit")
        terminal.press("Down")
        terminal.wait_for(">env_step" if name == "PYTHONIOENCODING" else "▸env_step")
        terminal.press("q")
        terminal.wait_for("code=0=")
    finally:
        terminal.close()


def test_a_session_that_is_deleted_or_damaged_keeps_the_last_figures(training, tmp_path):
    terminal = Terminal(tmp_path, 100, 30)
    try:
        terminal.run(["top"])
        terminal.wait_for("env_step", "steps/s now")
        training.kill()
        terminal.wait_for("killed")
        with closing(sqlite3.connect(only_session(tmp_path) / "session.db")) as database:
            database.execute("DROP TABLE iteration")
        terminal.wait_for(" ! ")
        assert "env_step" in terminal.text
        terminal.press("q")
        terminal.wait_for("code=0=")
    finally:
        terminal.close()


def test_a_worker_that_hangs_is_shown_with_its_line_and_then_the_driver(tmp_path):
    with hanging(tmp_path, WORKER, "fork") as (_, session):
        terminal = Terminal(tmp_path, 100, 30, RLPROF_DIR="runs")
        try:
            terminal.run(["top", session.name])
            shown = terminal.wait_for("Stuck for", "Stuck here", "env-1, MainThread", "# this line hangs")
            assert "waits in env_wait for env-1, which has been inside env_step for" in shown
            assert (
                shown.index("env-1, MainThread") < shown.index("# this line hangs") < shown.index("train, MainThread")
            )
            assert "pipe.recv() for pipe in pipes" in shown
            assert "Advice" not in shown
            terminal.press("q")
            terminal.wait_for("code=0=")
            terminal.run(["top", "--once", session.name])
            terminal.wait_for("code=0=", f"`rlprof stacks {session.name}` shows where.")
        finally:
            terminal.close()
