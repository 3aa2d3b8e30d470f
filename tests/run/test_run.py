"""What `rlprof run` records and prints."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from alike import RUN, alone, execute, facts_of_program, only_session, printed, recorded, sessions
from sessions import facts_of

SPANS = """
import time
from rlprof import get_profiler, profile
time.sleep(0.2)
for _ in range(5):
    with profile("env_step"):
        time.sleep(0.04)
get_profiler().add_steps(5)
"""


def script(folder: Path, program: str, name: str = "train.py") -> str:
    (folder / name).write_text(program)
    return name


def test_time_before_the_training_is_start_up(tmp_path):
    done = recorded([script(tmp_path, SPANS)], tmp_path)
    facts = facts_of(only_session(tmp_path))
    assert (facts.session.name, facts.ended, facts.progress.steps) == ("train", "ended", 5)
    assert facts.session.command[1:] == ("train.py",)
    rows = {row.operation: row for row in facts.breakdown.rows}
    assert "startup" not in rows
    assert next(part.ns for part in facts.breakdown.outside if part.name == "startup") >= 0.2e9  # the first sleep
    assert rows["env_step"].ledger_ns >= 5 * 0.04e9
    assert rows["unattributed"].ledger_ns < 0.2 * facts.breakdown.wall_ns
    assert done.stdout == ""


def test_the_last_lines_are_the_answer_and_the_next_command(tmp_path):
    done = recorded([script(tmp_path, SPANS)], tmp_path)
    lines = done.stderr.splitlines()
    assert lines[-1] == f"rlprof: Details: rlprof report sessions/{only_session(tmp_path).name}"
    assert " steps/s over " in lines[0]
    assert lines[1].startswith("rlprof: Not counted: ")
    assert lines[2].startswith("rlprof: Most time: env_step ")
    (answer,) = [line for line in lines if line.startswith(("rlprof: No known problem found.", "rlprof: Change first"))]
    assert not any(line.startswith("rlprof: ") for line in lines[lines.index(answer) + 1 : -1])
    assert len(lines) <= 8
    assert recorded(["--quiet", "train.py"], tmp_path).stderr == ""


@pytest.mark.long
def test_options_are_those_of_record(tmp_path):
    pytest.importorskip("tensorboard")
    program = SPANS + "with get_profiler().iteration(): time.sleep(0.01)"
    words = ["--name", "mine", "--dir", "here", "--jsonl", "lines.jsonl", "--flat", "flat", "--timeline", "100"]
    done = recorded([*words, "--tensorboard", "board", "--summary-every", "1", script(tmp_path, program)], tmp_path)
    assert printed(done.stderr).startswith("  since the start"), done.stderr
    (session,) = (tmp_path / "here").iterdir()
    assert session.name.startswith("mine_")
    assert json.loads((tmp_path / "lines.jsonl").read_text())["iteration"] == 1
    assert [path.stem for path in (tmp_path / "flat" / "raw").iterdir()] == [session.name]
    assert len(list((tmp_path / "board").iterdir())) == 1
    from rlprof.session.reader import Session

    with Session(session) as read:
        assert any(read.timeline())


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nothing.py"], "there is no script nothing.py"),
        (["python"], "rlprof run -- python"),
        (["--", "no-such-command", "x"], "there is no command no-such-command"),
        ([], "Missing argument"),
        (["--nope", "train.py"], "No such option"),
        (["--summary-every", "0", "train.py"], "--summary-every"),
    ],
)
def test_wrong_use_is_one_sentence_and_records_nothing(words, reason, tmp_path):
    script(tmp_path, "print('ran')")
    done = recorded(words, tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sessions(tmp_path) == []


@pytest.mark.long
def test_any_command_and_every_python_it_runs(tmp_path):
    script(tmp_path, "print('one')", "one.py")
    script(tmp_path, "print('two')", "two.py")
    commands = f"{sys.executable} one.py && {sys.executable} two.py && echo three && exit 4"
    done = recorded(["--", "sh", "-c", commands], tmp_path)
    assert (done.stdout, done.returncode) == ("one\ntwo\nthree\n", 4)
    assert {facts_of(session).session.name for session in sessions(tmp_path)} == {"one", "two"}


CHILDREN = """
import multiprocessing, os, subprocess, sys
def work(_): return os.getpid()
if __name__ == "__main__":
    subprocess.run([sys.executable, "-c", "import rlprof.auto"], check=True)
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(work, [0]) != [os.getpid()]
"""


@pytest.mark.long
def test_children_begin_no_session_of_their_own(tmp_path):
    done = recorded([script(tmp_path, CHILDREN)], tmp_path)
    assert printed(done.stderr) == ""
    assert facts_of(only_session(tmp_path)).ended == "ended"


@pytest.mark.long
def test_a_run_inside_a_run_has_its_own_session(tmp_path):
    script(tmp_path, "print('inner')", "inner.py")
    program = f"import subprocess; subprocess.run({[*RUN, 'inner.py']!r}, check=True)"
    assert recorded([script(tmp_path, program)], tmp_path).stdout == "inner\n"
    assert {facts_of(session).session.name for session in sessions(tmp_path)} == {"train", "inner"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("ending", "code", "ended"),
    [
        ("import os; os._exit(5)", 5, "os._exit(5)"),
        ("import os, threading; threading.Thread(target=os._exit, args=(5,)).start(); time.sleep(9)", 5, "os._exit(5)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)", -15, "SIGTERM"),
        ("raise ValueError('diverged')", 1, "ValueError: diverged"),
        ("raise KeyboardInterrupt", -2, "KeyboardInterrupt"),
    ],
)
def test_however_it_ends_the_session_is_complete(ending, code, ended, tmp_path):
    done = recorded([script(tmp_path, f"{SPANS}\n{ending}")], tmp_path)
    assert done.returncode == code, done.stderr
    session = only_session(tmp_path)
    facts = facts_of(session)
    assert (facts.ended, facts.operation("env_step").calls) == (ended, 5)
    assert (session / "summary.txt").exists()


@pytest.mark.long
def test_a_program_started_by_exec_gets_another_session(tmp_path):
    script(tmp_path, "print('new')", "next.py")
    ending = "import os, sys; os.execlp(sys.executable, sys.executable, 'next.py')"
    done = recorded([script(tmp_path, f"{SPANS}\n{ending}")], tmp_path)
    assert done.stdout == "new\n"
    first, second = map(facts_of, sessions(tmp_path))
    assert (first.ended, first.operation("env_step").calls) == ("replaced by exec", 5)
    assert (second.ended, second.session.name) == ("ended", "next")


@pytest.mark.long
def test_an_exec_that_fails_does_not_end_the_recording(tmp_path):
    ending = """
import os
try:
    os.execvp("no-such-program", ["x"])
except FileNotFoundError:
    pass
"""
    facts = facts_of_program(tmp_path, f"{ending}{SPANS}")
    assert (facts.ended, facts.operation("env_step").calls) == ("ended", 5)


@pytest.mark.long
def test_a_daemon_leaves_its_parents_session_complete(tmp_path):
    program = "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(0.5)"
    began = time.monotonic()
    assert recorded([script(tmp_path, program)], tmp_path).returncode == 0
    assert time.monotonic() - began < 30
    assert facts_of(only_session(tmp_path)).ended == "os._exit(0)"


OWN = """
import time
from rlprof import profile, record
time.sleep(0.1)
with record("mine", settings={"envs": 8}, flat="flat") as recording:
    with profile("env_step"):
        time.sleep(0.1)
print(recording.folder.name, (recording.folder / "summary.txt").exists())
with record("again") as second:
    pass
print(second.folder != recording.folder)
"""


def test_record_in_the_program_gets_the_same_recording(tmp_path):
    done = recorded([script(tmp_path, OWN)], tmp_path)
    assert printed(done.stderr) == ""
    first, second = sessions(tmp_path)
    assert done.stdout == f"{first.name} True\nTrue\n"
    facts = facts_of(first)
    assert (facts.session.name, facts.session.settings, facts.ended) == ("mine", {"envs": 8}, "finished")
    assert facts.progress.startup_ns
    assert "env_step" in {row.operation for row in facts.breakdown.top}
    assert (tmp_path / "flat" / "raw" / f"{first.name}.json").exists()
    assert facts_of(second).session.name == "again"


@pytest.mark.long
@pytest.mark.parametrize("program", ["import rlprof.auto", "import rlprof.auto, rlprof.auto as again, rlprof"])
@pytest.mark.parametrize("way", [alone, recorded], ids=["alone", "under run"])
def test_auto_does_the_same_from_inside(program, way, tmp_path):
    way([script(tmp_path, f"{program}\n{SPANS}")], tmp_path)
    facts = facts_of(only_session(tmp_path))
    assert (facts.session.name, facts.ended, facts.progress.steps) == ("train", "ended", 5)
    assert facts.progress.startup_ns


@pytest.mark.long
def test_auto_records_child_processes(tmp_path):
    program = f"import rlprof.auto\n{CHILDREN}"
    assert alone([script(tmp_path, program)], tmp_path).returncode == 0
    assert only_session(tmp_path)


def test_rlprof_1_records_a_program_that_imports_rlprof(tmp_path):
    done = alone([script(tmp_path, SPANS)], tmp_path, RLPROF="1", RLPROF_OPTIONS='{"name": "mine"}')
    assert done.returncode == 0, done.stderr
    assert facts_of(only_session(tmp_path)).session.name == "mine"


@pytest.mark.long
def test_rlprof_1_records_neither_the_command_line_nor_other_programs(tmp_path):
    assert alone([script(tmp_path, "print('no rlprof')")], tmp_path, RLPROF="1").stderr == ""
    assert execute([RUN[0], "--version"], tmp_path, RLPROF="1").returncode == 0
    assert alone(["-m", "rlprof", "--version"], tmp_path, RLPROF="1").returncode == 0
    assert alone([script(tmp_path, SPANS)], tmp_path, RLPROF="0").stderr == ""
    assert sessions(tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("options", ["{", "[]", '{"colour": "red"}'])
def test_invalid_options_are_reported_and_ignored(options, tmp_path):
    done = alone([script(tmp_path, SPANS)], tmp_path, RLPROF="1", RLPROF_OPTIONS=options)
    assert done.returncode == 0
    assert done.stderr.count("rlprof: RLPROF_OPTIONS") == 1
    assert facts_of(only_session(tmp_path)).operation("env_step").calls == 5


def test_a_session_that_cannot_be_written_does_not_stop_the_training(tmp_path):
    (tmp_path / "sessions").write_text("in the way")
    done = recorded([script(tmp_path, f"{SPANS}\nprint('done')")], tmp_path)
    assert (done.stdout, done.returncode) == ("done\n", 0)
    assert done.stderr.startswith("rlprof: no session can be written in ")
    assert "RlprofWarning" not in done.stderr


@pytest.mark.long
def test_data_recorded_in_memory_only_is_shown_at_the_end(tmp_path):
    (tmp_path / "sessions").write_text("in the way")
    done = recorded([script(tmp_path, SPANS)], tmp_path)
    lines = done.stderr.splitlines()
    place = lines.index("rlprof: no session was written. This was recorded in memory:")
    assert lines[place + 1].startswith("rlprof: 0 iterations in ")
    assert any(line.split()[:1] == ["env_step"] and line.endswith(" 5") for line in lines[place:])
    quiet = recorded(["--quiet", "train.py"], tmp_path)
    assert "recorded in memory:" not in quiet.stderr


@pytest.mark.long
@pytest.mark.parametrize("driver", ["1", "1:7"])
def test_a_stale_driver_whose_pid_is_reused_does_not_prevent_recording(driver, tmp_path):
    """As in a job script that a recorded run has written: PID 1 is alive, but is no driver."""
    stale = {"RLPROF_SESSION": str(tmp_path / "gone"), "RLPROF_DRIVER": driver}
    script(tmp_path, SPANS)
    assert recorded(["train.py"], tmp_path, **stale).returncode == 0  # which leaves the session it finds anyway
    done = alone(["train.py"], tmp_path, RLPROF="1", **stale)
    assert done.returncode == 0, done.stderr
    assert [facts_of(session).operation("env_step").calls for session in sessions(tmp_path)] == [5, 5]


def test_the_last_file_descriptors_are_left_to_the_program(tmp_path):
    program = "held = [open('/dev/null') for _ in range(3)]\nimport decimal, json\nprint('ran')\n"
    script(tmp_path, program)
    limited = 'ulimit -n 12; exec "$@"'
    assert execute(["sh", "-c", limited, "sh", sys.executable, "train.py"], tmp_path).stdout == "ran\n"
    done = execute(["sh", "-c", limited, "sh", *RUN, "train.py"], tmp_path)
    assert (done.stdout, done.returncode) == ("ran\n", 0), done.stderr
    assert "raise the limit with `ulimit -n 1024`" in done.stderr


def test_a_python_without_rlprof_is_reported(tmp_path):
    (tmp_path / "without" / "rlprof").mkdir(parents=True)
    (tmp_path / "without" / "rlprof" / "__init__.py").write_text("raise ImportError('not here')")
    command = f"PYTHONPATH=$PYTHONPATH:{tmp_path / 'without'} {sys.executable} train.py"
    script(tmp_path, "print('runs')")
    done = recorded(["--", "sh", "-c", command], tmp_path)
    assert (done.stdout, done.returncode) == ("runs\n", 0)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"rlprof: {sys.executable} is not recorded (not here); install rlprof into it: ")
    command, source = line.partition("into it: ")[2].split(" -m pip install ")
    assert command == sys.executable
    assert (Path(source) / "pyproject.toml").exists()  # from where this one was installed


TRAINING = """
import gymnasium
env = gymnasium.make("CartPole-v1")
env.reset(seed=1)
for _ in range(200):
    *_, terminated, truncated, _ = env.step(env.unwrapped.action_space.sample())
    if terminated or truncated:
        env.reset()
"""


@pytest.mark.long
def test_steps_of_an_unedited_training_are_named_and_counted(tmp_path):
    pytest.importorskip("gymnasium")
    facts = facts_of_program(tmp_path, TRAINING)
    assert (facts.operation("env_step").calls, facts.progress.steps) == (200, 200)
    assert facts.progress.startup_ns


def test_without_probes_nothing_is_named(tmp_path):
    pytest.importorskip("gymnasium")
    facts = facts_of_program(tmp_path, TRAINING, "--no-probes")
    assert facts.operations == ()
    assert {part.name for part in facts.breakdown.outside} == {"startup"}


@pytest.mark.long
def test_a_probe_that_cannot_be_loaded_is_reported_and_the_others_work(tmp_path):
    pytest.importorskip("gymnasium")
    probes = "no_such_module:PROBE,rlprof.probes.gymnasium:PROBE"
    done = recorded([script(tmp_path, TRAINING)], tmp_path, RLPROF_PROBES=probes)
    assert done.stderr.count("RlprofWarning: rlprof: the probe no_such_module:PROBE cannot be loaded") == 1
    assert facts_of(only_session(tmp_path)).operation("env_step").calls == 200
