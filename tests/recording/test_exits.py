"""However a training ends, its session is complete, and it ends as it would without rlprof."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sessions import facts_of, run_program, start_program

from rlprof import Profiler, record

TRAIN = """
import os, signal, sys, threading, time
from rlprof import get_profiler, profile, record

profiler = get_profiler()
recording = record("run")
for _ in range(20):
    with profiler.iteration(), profile("env_step"):
        sum(range(2_000))
    profiler.add_steps(1)
"""


def only_session(folder: Path) -> Path:
    (session,) = folder.iterdir()
    return session


@pytest.mark.parametrize(
    ("ending", "code", "ended"),
    [
        ("", 0, "ended"),
        ("recording.stop()", 0, "finished"),
        ("sys.exit(3)", 3, "exit 3"),
        ("sys.exit()", 0, "ended"),
        ("sys.exit(0)", 0, "ended"),
        ("sys.exit(True)", 1, "exit 1"),
        ("sys.exit('no reward')", 1, "exit 1: no reward"),
        ("raise SystemExit(4)", 4, "exit 4"),
        ("exit(5)", 5, "exit 5"),
        ("import argparse; argparse.ArgumentParser().error('no')", 2, "exit 2"),
        ("import runpy; runpy.run_module('no_such_module')", 1, "ImportError: No module named no_such_module"),
        ("os._exit(6)", 6, "os._exit(6)"),
        (
            "try: sys.exit(3)\nexcept SystemExit as error: print(error.code)",
            0,
            "ended",
        ),
        ("thread = threading.Thread(target=sys.exit, args=(3,)); thread.start(); thread.join()", 0, "ended"),
        ("raise ValueError('diverged')", 1, "ValueError: diverged"),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(5)", -2, "KeyboardInterrupt"),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)", -15, "SIGTERM"),
        ("os.kill(os.getpid(), signal.SIGHUP); time.sleep(5)", -1, "SIGHUP"),
        (
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); os.kill(os.getpid(), 15); time.sleep(5)",
            7,
            "exit 7",
        ),
    ],
)
def test_the_session_is_complete(ending, code, ended, tmp_path):
    done = run_program(TRAIN + ending, tmp_path)
    assert done.returncode == code, done.stderr
    session = only_session(tmp_path)
    facts = facts_of(session)
    assert facts.ended == ended
    assert facts.progress.steps == 20
    assert facts.operation("env_step").calls == 20
    assert facts.progress.iterations == 20
    assert {path.name for path in session.iterdir()} == {"session.db", "raw.json", "summary.txt"}
    if code == 0:
        assert done.stderr == ""


def test_an_exception_inside_the_block_is_raised_again(tmp_path):
    program = """
from rlprof import profile, record
try:
    with record("run"):
        with profile("env_step"):
            raise RuntimeError("the simulator is gone")
except RuntimeError as error:
    print("raised", error)
"""
    done = run_program(program, tmp_path)
    assert done.stdout == "raised the simulator is gone\n"
    assert facts_of(only_session(tmp_path)).ended == "RuntimeError: the simulator is gone"


def test_an_immediate_exit_keeps_what_was_flushed(tmp_path):
    done = run_program(TRAIN + "recording.flush(); os._exit(4)", tmp_path)
    assert done.returncode == 4
    assert facts_of(only_session(tmp_path)).progress.steps == 20


def test_a_signal_without_a_python_handler_call_is_detected():
    program = """
import signal
from rlprof.ledger import _core
signal.signal(signal.SIGUSR1, lambda *_: None)
_core.signal_follow(signal.SIGUSR1)
_core.signal_follow(signal.SIGUSR1)
assert not _core.signal_unseen(signal.SIGUSR1)
signal.raise_signal(signal.SIGUSR1)
assert _core.signal_unseen(signal.SIGUSR1)
_core.signal_seen(signal.SIGUSR1)
assert not _core.signal_unseen(signal.SIGUSR1)
for wrong in (0, 65, 10**30):
    try:
        _core.signal_follow(wrong)
    except (ValueError, OverflowError):
        continue
    raise AssertionError(wrong)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_sigterm_while_the_main_thread_waits_for_another(tmp_path):
    process = start_program(TRAIN + "print('waiting'); threading.Event().wait()", tmp_path)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == -signal.SIGTERM
    finally:
        process.kill()
        process.communicate()
    assert facts_of(only_session(tmp_path)).ended == "SIGTERM"


def test_an_ignored_signal_stays_ignored(tmp_path):
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)" + TRAIN
    done = run_program(program + "os.kill(os.getpid(), signal.SIGHUP); print('alive')", tmp_path)
    assert done.stdout == "alive\n"


def test_signal_handlers_are_restored_when_a_recording_stops(tmp_path):
    program = TRAIN + "recording.stop(); print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    assert run_program(program, tmp_path).stdout == "True\n"


@pytest.mark.parametrize(
    "ending", ["os._exit(0)", "sys.exit(0)", "os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)"]
)
def test_a_forked_child_leaves_the_session_alone(ending, tmp_path):
    program = f"""{TRAIN}
child = os.fork()
if child == 0:
    with profile("in_child"):
        pass
    {ending}
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
for _ in range(5):
    with profile("env_step"):
        pass
"""
    done = run_program(program, tmp_path)
    assert done.stdout == ("-15\n" if "kill" in ending else "0\n"), done.stderr
    facts = facts_of(only_session(tmp_path))
    if ending == "sys.exit(0)":  # it has written what it recorded
        assert facts.operation("in_child").calls == 1
    assert facts.operation("env_step").calls == 25


def test_the_end_does_not_wait_for_a_disk_that_hangs(tmp_path, monkeypatch):
    """A flush never returns, and the training ends all the same."""
    from rlprof.recording import recording as module

    monkeypatch.setattr(module, "JOIN_SECONDS", 0.2)
    recorded = record("run", dir=tmp_path, profiler=Profiler())
    try:
        assert recorded._lock.acquire(timeout=5)
        began = time.monotonic()
        recorded.stop()
        assert time.monotonic() - began < 5
    finally:
        recorded._lock.release()
        recorded._flusher.writer.close()


def test_an_interrupt_during_stop_is_raised_again_when_the_session_is_complete(tmp_path):
    program = f"""{TRAIN}
real = recording._flusher.writer.end
def interrupted(*how):
    recording._flusher.writer.end = real
    raise KeyboardInterrupt
recording._flusher.writer.end = interrupted
try:
    recording.stop()
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""
    done = run_program(program, tmp_path)
    assert done.stdout == "interrupted True\n", done.stderr
    session = only_session(tmp_path)
    assert facts_of(session).ended == "finished"
    assert (session / "raw.json").exists()


def test_the_report_is_written_again_after_an_interrupt(tmp_path, capsys):
    recording = record("run", dir=tmp_path, profiler=Profiler())
    calls = []

    def interrupted_once(folder):
        calls.append(folder)
        if len(calls) == 1:
            raise KeyboardInterrupt

    recording.at_end.insert(0, interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        recording.stop()
    assert calls == 2 * [recording.folder]
    assert (recording.folder / "raw.json").exists()
    assert "no session was written" not in capsys.readouterr().err


def test_sigterm_inside_a_flush_of_the_main_thread_waits_for_that_flush_only(tmp_path):
    program = f"""{TRAIN}
recording.watchers.append(lambda batch: os.kill(os.getpid(), signal.SIGTERM))
began = time.monotonic()
recording.flush()
time.sleep(9)
"""
    began = time.monotonic()
    done = run_program(program, tmp_path)
    assert done.returncode == -signal.SIGTERM
    assert time.monotonic() - began < 8
    assert facts_of(only_session(tmp_path)).ended == "SIGTERM"


def test_an_exception_that_cannot_be_printed(tmp_path):
    program = """
from rlprof import profile, record
class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")
try:
    with record("run"):
        raise Mute
except Mute:
    print("mute")
"""
    assert run_program(program, tmp_path).stdout == "mute\n"
    assert facts_of(only_session(tmp_path)).ended == "Mute"


def test_a_second_recording_of_one_profiler_writes_nothing_and_warns(tmp_path):
    program = f"""{TRAIN}
second = record("second")
print(second.folder)
second.stop()
with profile("env_step"):
    pass
"""
    done = run_program(program, tmp_path)
    assert done.stdout == "None\n"
    assert done.stderr.count("RlprofWarning") == 1
    assert facts_of(only_session(tmp_path)).operation("env_step").calls == 21


def test_a_second_run_begins_with_empty_accounts(tmp_path):
    program = TRAIN + "recording.stop()\nwith record('run'):\n  with profiler.iteration(), profile('render'): pass"
    assert run_program(program, tmp_path).stderr == ""
    first, second = sorted(tmp_path.iterdir())
    assert facts_of(first).operation("env_step").calls == 20
    facts = facts_of(second)
    assert [item.operation for item in facts.operations] == ["render"]
    assert facts.progress.iterations == 1


def test_a_training_that_changes_its_working_directory(tmp_path):
    program = "import os; os.chdir(os.environ['HERE'])" + TRAIN + "os.chdir('/')"
    done = run_program(program, Path("runs"), HERE=str(tmp_path))
    assert done.stderr == ""
    session = only_session(tmp_path / "runs")
    assert (session / "summary.txt").exists()


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_recording_in_a_worker_process_is_ended_with_it(method, tmp_path):
    script = tmp_path / "workers.py"
    script.write_text("""
import multiprocessing, sys
from rlprof import Profiler, record
def work():
    profiler = Profiler()
    record("worker", profiler=profiler)
    with profiler.iteration(), profiler.profile("env_step"):
        pass
if __name__ == "__main__":
    process = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    process.start()
    process.join()
""")
    subprocess.run([sys.executable, str(script), method], cwd=tmp_path, check=True, timeout=60)
    facts = facts_of(only_session(tmp_path / "rlprof-runs"))
    assert (facts.ended, facts.progress.iterations) == ("ended", 1)
