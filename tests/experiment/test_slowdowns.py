"""Real trainings with planted times are slowed down, and the costs of operations are found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from sessions import rlprof

from rlprof import Profiler
from rlprof.errors import RlprofError
from rlprof.experiment.arm import ArmError
from rlprof.experiment.slowdowns import SlowdownPlan, command_of, run_slowdowns

pytestmark = pytest.mark.skipif(Profiler().core != "c", reason="only the C core slows operations down")

TRAINING = """
import sys, time
from rlprof import get_profiler, profile

def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

profiler = get_profiler()
for _ in range(int(sys.argv[1])):
    profiler.iteration()
    with profile("env_step"):
        compute(0.006)
    with profile("server_reply"):
        time.sleep(0.006)
    with profile("update"):
        compute(0.012)
    profiler.add_steps(10)
print("the last line", file=sys.stderr)
"""


@pytest.fixture
def training(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAINING)
    return path


@pytest.mark.long
def test_planted_costs_of_computing_and_sleeping_are_found(training):
    progress = []
    plan = SlowdownPlan(f"run {training} 100000", ("env_step", "server_reply"), seconds=25, width=0.02)
    found = run_slowdowns(plan, progress.append)
    assert [one.cost.estimate for one in found.values()] == pytest.approx([0.25, 0.25], abs=0.1)
    assert found["env_step"].slept < 0.5 < found["server_reply"].slept
    assert progress[0].block == 0
    assert progress[-1].so_far["env_step"].blocks >= 8


@pytest.mark.long
def test_an_operation_that_cannot_be_slowed_down_is_reported(training):
    found = run_slowdowns(SlowdownPlan(f"run {training} 100000", ("nothing",), seconds=5))
    assert found["nothing"].why_not == "nothing has no calls in these iterations that could be slowed down"


def test_a_training_that_is_too_short_is_reported(training):
    with pytest.raises(ArmError, match="ended before every slowdown was tried once"):
        run_slowdowns(SlowdownPlan(f"run {training} 12", ("env_step",), seconds=5))


@pytest.mark.long
def test_a_short_training_is_started_again(training):
    progress = []
    # A block is 4 iterations, so 17 blocks are more than 65 iterations, however few the start takes.
    run_slowdowns(SlowdownPlan(f"run {training} 65", ("env_step",), blocks=17, width=0.0), progress.append)
    assert max(state.process for state in progress) >= 2


@pytest.mark.parametrize(
    ("command", "again"),
    [
        (("/usr/bin/python", "train.py", "--envs", "4"), "run -- /usr/bin/python train.py --envs 4"),
        (("python", "-m", "package.train", "a b"), "run -- python -m package.train 'a b'"),
        (("python", "/opt/bin/rlprof", "train", "petri", "envs=4"), "train petri envs=4"),
        (("python", "-m", "rlprof", "train", "petri"), "train petri"),
    ],
)
def test_a_recorded_command_is_run_again(command, again):
    assert command_of(command) == again


def test_a_command_that_cannot_be_repeated_is_reported():
    for command in (("python", "-c", "..."), ("python",), ()):
        with pytest.raises(RlprofError, match=r"cannot be repeated\. Give one with --command"):
            command_of(command)


def record(folder, text, *words):
    """The session of a training."""
    (folder / "train.py").write_text(text)
    rlprof("run", "--dir", "runs", "train.py", *words, cwd=folder)
    (session,) = (folder / "runs").iterdir()
    return str(session)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return record(tmp_path_factory.mktemp("recorded"), TRAINING, "6")


@pytest.mark.long
def test_the_command_predicts_ranks_and_verifies(training, tmp_path):
    session = record(tmp_path, TRAINING, "40")
    shown = rlprof("whatif", session, "update=2x", cwd=tmp_path)
    assert shown.stdout.startswith("With update 2x as fast, the training would make ")
    assert "steps per second instead of" in " ".join(shown.stdout.split())
    verify = ("--verify", "--command", f"run {training} 100000", "--max-time", "15s", "--precision", "3%")
    done = rlprof("whatif", session, "update=2x", *verify, "--format", "json", cwd=tmp_path)
    assert "slowed down by 50 and 100%" in " ".join(done.stderr.split())
    found = json.loads(done.stdout)
    assert found["asked"]["gain"]["estimate"] == pytest.approx(1 / 0.75 - 1, abs=0.12)
    assert found["verified"]["experiment"]["estimate"] == pytest.approx(1 / 0.75 - 1, abs=0.15)
    assert next(one["operation"] for one in found["ranking"]) == "update"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("env_step=2",), "env_step=2 is not a speedup. Write env_step=2x"),
        (("--verify",), "--verify needs an operation to slow down"),
        (("env_step=2x", "--verify", "--command", "report last"), "must begin with run or train"),
    ],
)
def test_wrong_use_is_one_sentence(recorded, words, message):
    done = rlprof("whatif", recorded, *words, code=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_session_without_iterations_is_reported(tmp_path):
    session = record(tmp_path, "from rlprof import profile\nwith profile('env_step'): pass\n")
    done = rlprof("whatif", session, cwd=tmp_path, code=2)
    assert "has no iterations" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("what", ["compare", "whatif"])
def test_no_process_is_left_running(training, recorded, tmp_path, number, what):
    """However the command ends, its arms end too, at their next iteration at the latest."""
    mark = f"{os.getpid()}{int(number)}{len(what)}000000"  # so many iterations, to be known by
    again = f"run {training} {mark}"
    words = ["compare", again, again]
    if what == "whatif":
        words = ["whatif", recorded, "update=2x", "--verify", "--command", again]
    words = [sys.executable, "-m", "rlprof", *words]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as command:
        while not running(mark):
            time.sleep(0.05)
        time.sleep(1)
        command.send_signal(number)
        command.wait(40)
        end = time.monotonic() + 20
        while running(mark) and time.monotonic() < end:
            time.sleep(0.1)
    assert not running(mark)


def running(mark):
    found = (one for one in psutil.process_iter(["cmdline"]) if (one.info["cmdline"] or [])[-1:] == [mark])
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]
