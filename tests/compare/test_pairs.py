"""Two processes that alternate, with planted times."""

from __future__ import annotations

import math
import random
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import suppress

import psutil
import pytest

from rlprof.analysis.components import component_of
from rlprof.compare.arms import is_command
from rlprof.compare.paired import Plan, compare_live
from rlprof.compare.text import verdict
from rlprof.errors import RlprofError
from rlprof.experiment.arm import Arm, ArmError, words_of
from rlprof.experiment.pairs import measured, run_pair

TRAINING = """
import sys, time
from rlprof import get_profiler, profile
step, iterations = float(sys.argv[1]), int(sys.argv[2])
profiler = get_profiler()
for _ in range(iterations):
    profiler.iteration()
    with profile("env_step"):
        time.sleep(step)
    with profile("update"):
        time.sleep(0.01)
    profiler.add_steps(0 if "--no-steps" in sys.argv else 10)
print("the last words", file=sys.stderr)
sys.exit(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
"""


def script(folder, text, name="train.py"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture
def training(tmp_path):
    return script(tmp_path, TRAINING)


def test_a_planted_difference_is_found_where_it_is(training):
    commands = (f"run {training} 0.04 1000", f"rlprof run {training} 0.02 1000")
    progress = []
    pair = run_pair(commands, 5, random.Random(1), warm_up=1, on_progress=progress.append)
    assert progress == [0, 1, 2, 3, 4, 5]
    assert len(pair.blocks) == 5
    assert pair.changes == ()  # but for what is in the command lines
    found = measured(pair, component_of({}))
    a, b = found.a, found.b
    assert a.steps == b.steps == 10
    assert a.ledger["env_step"] > 0.04e9  # a sleep is at least as long as requested
    assert b.ledger["env_step"] > 0.02e9
    assert a.ledger["env_step"] > 1.2 * b.ledger["env_step"]
    assert a.wall_ns > b.wall_ns
    assert found.typical["env_step"] > math.log(1.2)
    assert "turn_wait" not in a.ledger
    assert sum(a.ledger.values()) == pytest.approx(a.wall_ns, rel=0.05)
    assert not [child for child in psutil.Process().children(recursive=True) if "train.py" in " ".join(child.cmdline())]


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ("0.001 0 0", r"B .* ended without an iteration. .*\(\):\n  the last words$"),
        ("0.001 3 7", "B .* failed with exit code 7.*\n.*the last words"),
        ("0.001 2 0", "B .* ended after 2 iterations, but a pair needs 8. Let it train longer:\n.*the last words"),
        ("0.001 1 0", "B .* ended after 1 iteration, but a pair needs 8."),
        ("0.001 7 0", "B .* ended after 7 iterations, .*, or measure fewer with --iterations 2:\n"),
        ("0.001 1000 0 --no-steps", "A .* counts environment steps, B .* counts none"),
    ],
)
def test_an_arm_that_cannot_be_compared_is_named_with_its_last_words(training, arm, message):
    with pytest.raises(ArmError, match=f"(?s){message}"):
        run_pair((f"run {training} 0.001 1000", f"run {training} {arm}"), 3, random.Random(1), warm_up=4)


def test_per_iteration_an_arm_may_count_no_steps(training):
    commands = (f"run {training} 0.02 1000", f"run {training} 0.001 1000 --no-steps")
    found = compare_live(Plan(*commands, pairs=1, blocks=3, per="iteration"), component_of({}))
    assert (found.per_step, found.unit_chosen, found.withheld) == (False, True, False)
    assert found.a_ns > 0.03e9  # both sleeps of an iteration, not a tenth of them
    assert found.work == "10 steps per iteration in A, 0 in B"


def test_an_arm_that_dies_while_it_waits_is_named(training, tmp_path):
    with Arm("A", f"run {training} 0.001 1000", tmp_path) as arm:
        arm.begin()
        arm._process.kill()
        arm._process.wait()
        with pytest.raises(ArmError, match=r"A .* was ended by signal 9"):
            arm.run()


def test_environment_variables_come_before_a_command_as_in_a_shell(tmp_path):
    command = "OMP_NUM_THREADS=1 GREETING='a b' rlprof run train.py X=1"
    assert is_command(command)
    assert words_of(command) == ["run", "train.py", "X=1"]
    script(tmp_path, "import os; print(os.environ['GREETING'], os.environ['OMP_NUM_THREADS'])")
    with Arm("A", command, tmp_path, working_folder=str(tmp_path)) as arm, pytest.raises(ArmError, match="a b 1"):
        arm.begin()  # it ends without an iteration, and its output is shown


def test_what_is_no_arm_is_refused():
    with pytest.raises(RlprofError, match="must begin with run or train"):
        words_of("report last")
    with pytest.raises(RlprofError, match="is not a command line"):
        words_of("run 'train.py")


@pytest.mark.long
def test_an_arm_that_hangs_is_named_after_the_patience_it_was_given(tmp_path):
    path = script(tmp_path, "import time\nprint('the last words', flush=True)\ntime.sleep(1000)\n", "hang.py")
    with pytest.raises(ArmError, match=r"(?s)B .*did not reach its first iteration in 3 s.*the last words"):
        run_pair((f"run {path}", f"run {path}"), 3, Chosen("BA"), patience=3)
    assert not [child for child in psutil.Process().children(recursive=True) if "hang.py" in " ".join(child.cmdline())]


def test_an_arm_that_fails_is_named_while_the_other_still_starts(training, tmp_path):
    """Not after the other's start, which may take minutes, and not the other instead, which is well."""
    slow = script(tmp_path, "import time\ntime.sleep(1000)\n", "slow.py")
    with pytest.raises(ArmError, match=r"^A \(run .*/train.py 0 0 7\) failed with exit code 7"):
        run_pair((f"run {training} 0 0 7", f"run {slow}"), 3, Chosen("BA"), patience=60)


class Chosen(random.Random):
    """Chooses the arms in a known order."""

    def __init__(self, order):
        super().__init__(1)
        self._order = order

    def sample(self, population, k, **_):
        return sorted(population, key=lambda one: self._order.index(one[0] if isinstance(one, tuple) else one.name))[:k]


@pytest.mark.long
@pytest.mark.parametrize(("gate", "code"), [([], 0), (["--fail-if-slower", "5%"], 130)])
def test_an_interrupted_comparison_shows_what_it_has_and_passes_no_gate(training, tmp_path, gate, code):
    """B is far faster: but for Ctrl-C, it would pass."""
    commands = [f"run {training} 0.05 100000", f"run {training} 0.001 100000"]
    options = ["--iterations", "2", "--precision", "0.001%", *gate]
    command = [sys.executable, "-m", "rlprof", "compare", *commands, *options]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("pair 2"):  # the first has been measured
                break
        process.send_signal(signal.SIGINT)
        shown, messages = process.communicate(timeout=120)
    assert process.returncode == code, messages
    assert "Interrupted: this is the result so far." in shown
    assert ("interrupted, so --fail-if-slower has no answer" in messages) == bool(gate)


def interrupted(training, block):
    """A comparison with Ctrl-C at a block of its first pair."""

    def interrupt(state):
        if state.block == block:
            raise KeyboardInterrupt

    command = f"run {training} 0.01 1000"
    return compare_live(Plan(command, command, blocks=5), component_of({}), interrupt)


def test_an_interrupt_leaves_what_was_measured_of_the_first_pair(training):
    found = interrupted(training, block=2)
    assert found.pairs == 1
    assert found.interrupted
    assert found.speedup.low is None
    assert "No verdict: a single pair gives no error rate" in verdict(found)


def test_an_interrupt_before_anything_was_measured_is_one(training):
    with pytest.raises(KeyboardInterrupt):
        interrupted(training, block=0)


WITH_A_WORKER = """
import multiprocessing, time
from rlprof import get_profiler

def work(connection):
    while connection.recv():
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        connection.send(True)

if __name__ == "__main__":
    here, there = multiprocessing.get_context("fork").Pipe()
    multiprocessing.get_context("fork").Process(target=work, args=(there,), daemon=True).start()
    while True:
        get_profiler().iteration()
        here.send(True)
        here.recv()
        get_profiler().add_steps(1)
"""


def test_cpu_time_is_that_of_workers_too(tmp_path):
    with Arm("A", f"run {script(tmp_path, WITH_A_WORKER)}", tmp_path) as arm:
        arm.begin()
        iterations = arm.run_each(5)
    assert len(iterations) == 5
    assert all(0.02e9 <= one.cpu_ns < 0.06e9 for one in iterations)


def test_an_arm_leaves_its_session_and_no_reports(training, tmp_path):
    with Arm("A", f"run {training} 0.001 1000", tmp_path) as arm:
        arm.begin()
        arm.run()
        arm.request_end()
    left = {path.name for path in (tmp_path / "A").rglob("*") if path.is_file()}
    assert "session.db" in left
    assert not left & {"raw.json", "summary.txt"}


WITH_ONE_THAT_STAYS = """
import subprocess, sys
from rlprof import get_profiler
program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
own_session = sys.argv[2] == "True"
child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=own_session)
child.stdout.readline()
open(sys.argv[1], "w").write(str(child.pid))
while True:
    get_profiler().iteration()
"""


def _lives(process):
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.long
@pytest.mark.parametrize("own_session", [False, True], ids=["in its group", "in a session of its own"])
def test_what_an_arm_has_started_is_gone_with_it_even_if_it_does_not_want_to(tmp_path, own_session):
    path, pid = script(tmp_path, WITH_ONE_THAT_STAYS), tmp_path / "pid"
    with Arm("A", f"run {path} {pid} {own_session}", tmp_path) as arm:
        arm.begin()
        left = psutil.Process(int(pid.read_text()))
        assert left.is_running()
    try:
        deadline = time.monotonic() + 60  # the kernel takes its time, on a busy machine
        while _lives(left):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        with suppress(psutil.NoSuchProcess):
            left.kill()


def test_the_last_words_of_an_arm_that_has_printed_much_take_little_memory(training, tmp_path):
    with Arm("A", f"run {training} 0.001 1000", tmp_path) as arm:
        arm.begin()
        with (tmp_path / "A.out").open("r+b") as output:
            output.truncate(1 << 30)  # a hole, which takes no room on the disk
            output.seek(0, 2)
            output.write(b"\nthe last words\n")
        tracemalloc.start()
        try:
            words = arm.last_output()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert words.endswith("\n  the last words")
    assert most < 1 << 22


SHORT = """
import time
from rlprof import get_profiler, profile
while True:
    get_profiler().iteration()
    with profile("env_step"):
        time.sleep(0.0005)
    get_profiler().add_steps(3)
"""


def test_short_iterations_alternate_in_groups(tmp_path):
    command = f"run {script(tmp_path, SHORT)}"
    progress = []
    pair = run_pair((command, command), 40, random.Random(1), on_progress=progress.append)
    groups = [group for block in pair.blocks for group in (block.a, block.b)]
    assert sum(group.iterations for group in groups) == 2 * 40
    assert max(group.iterations for group in groups) > 1
    for group in groups:
        assert group.steps == 3 * group.iterations
        assert group.calls["env_step"] == group.iterations
        assert group.wall_ns >= 0.0005e9 * group.iterations
    assert progress[-1] == 40
    found = measured(pair, component_of({}))
    assert found.a.steps == 3
    assert found.a.wall_ns == pytest.approx(sum(found.a.ledger.values()), rel=0.3)
