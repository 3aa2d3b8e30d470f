"""Stacks of trainings that hang: real programs under `rlprof run`, and the texts that faulthandler writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from sessions import INFO, Written, rlprof

from rlprof.errors import RlprofError
from rlprof.live.faulthandler_text import read_dump
from rlprof.live.stacks import RLPROF, SIGNAL, ProcessStacks, ThreadStack, request_stacks
from rlprof.live.stacks_text import Stacks, short_file, to_json, to_text
from rlprof.session.process import identity_of
from rlprof.session.recorded_process import Answer, AnsweredThread
from rlprof.session.requests import answers_of, pending

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
NO_CORE = {"RLPROF_CORE": "python"}

PYTHON_3_11 = r"""Thread 0x00007fa3c01086c0 (most recent call first):
  File "/project/d\xe9/train.py", line 3 in wait
  File "/usr/lib/python3.11/threading.py", line 982 in run
  File "/usr/lib/python3.11/threading.py", line 1045 in _bootstrap_inner
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Current thread 0x00007fa3c0c7bb80 (most recent call first):
  Garbage-collecting
  File "/project/d\xe9/train.py", line 8 in \xfcnter
  File ???, line ??? in ???
  File "/project/d\xe9/train.py", line 12 in <module>
"""
PYTHON_3_14 = r"""Thread 0x00007ff2e414f6c0 [loader [1]] (most recent call first):
  File "/project/train.py", line 3 in wait
  File "/usr/lib/python3.14/threading.py", line 1045 in _bootstrap

Thread 0x00007ff2e414f6c1 [python3.14] (most recent call first):
  <no Python frame>

Current thread 0x00007ff2e50c9740 [python3.14] (most recent call first):
  File "/project/train.py", line 12 in <module>
"""


def test_a_dump_of_python_3_11_is_read():
    loader, main = read_dump(PYTHON_3_11)
    assert (loader.ident, loader.name, main.ident) == (0x7FA3C01086C0, "", 0x7FA3C0C7BB80)
    assert loader.frames[0] == ("/project/dé/train.py", 3, "wait")
    assert [frame[2] for frame in loader.frames] == ["wait", "run", "_bootstrap_inner", "_bootstrap"]
    assert main.frames[0] == ("/project/dé/train.py", 8, "ünter")
    assert main.frames[1] == ("???", 0, "???")


def test_a_dump_of_python_3_14_has_the_names_of_threads():
    loader, empty, main = read_dump(PYTHON_3_14)
    assert (loader.name, empty.frames, main.frames) == ("loader [1]", [], [("/project/train.py", 12, "<module>")])


@pytest.mark.parametrize("end", ["  ...\n", ""])
def test_a_stack_that_faulthandler_has_cut_is_recognized(end):
    frames = '  File "a.py", line 6 in descend\n' * 100
    (thread,) = read_dump(f"Current thread 0x01 (most recent call first):\n{frames}{end}")
    assert thread.is_cut
    assert not read_dump(PYTHON_3_11)[0].is_cut


def test_this_python_writes_what_is_read(tmp_path):
    program = """
import faulthandler, sys, threading
def wait():
    event.wait()
event = threading.Event()
threading.Thread(target=wait, daemon=True).start()
faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
event.set()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    threads = read_dump(done.stderr)
    assert {thread.frames[-1][2] for thread in threads} == {"_bootstrap", "<module>"}
    assert [frame[1] for thread in threads for frame in thread.frames if frame[0] == "<string>"].count(7) == 1


@pytest.mark.parametrize(
    ("file", "short"),
    [
        ("/project/envs/env.py", "envs/env.py"),
        ("/usr/lib/python3.11/threading.py", "threading.py"),
        ("/home/u/.venv/lib/python3.14t/site-packages/torch/nn/modules/module.py", "torch/nn/modules/module.py"),
        ("/usr/lib/python3/dist-packages/gymnasium/core.py", "gymnasium/core.py"),
        ("/elsewhere/train.py", "/elsewhere/train.py"),
        ("<string>", "<string>"),
    ],
)
def test_files_are_shown_as_short_as_a_person_would_call_them(file, short):
    assert short_file(file, "/project") == short


def stacks_of(*threads: ThreadStack, **more) -> Stacks:
    process = ProcessStacks(7, "ppo", is_driver=True, answered=RLPROF, threads=threads)
    return Stacks("ppo_1", "/project", (replace(process, **more),))


START = (
    ("/usr/lib/python3.11/threading.py", 1002, "Thread._bootstrap", "self._bootstrap_inner()"),
    ("/usr/lib/python3.11/threading.py", 982, "Thread.run", "self._target(*self._args)"),
)
LOAD = ("/project/train.py", 5, "load", "lock.acquire()")


def test_threads_at_the_same_place_are_shown_once():
    shown = to_text(
        stacks_of(
            ThreadStack("MainThread", True, (("/project/train.py", 9, "<module>", "main()"),), 3),
            *(ThreadStack(f"loader-{i}", False, (*START, LOAD)) for i in range(3)),
        ),
        80,
    )
    assert shown == (
        "ppo (driver, process 7)\n"
        "  MainThread\n"
        "    ... 3 outer calls not shown\n"
        "    train.py:9 in <module>\n"
        "      main()\n"
        "  loader-0 and 2 other threads\n"
        "    ... 2 outer calls not shown\n"
        "    train.py:5 in load\n"
        "      lock.acquire()\n"
    )


@pytest.mark.parametrize("width", [40, 80])
def test_hostile_names_stay_on_their_line(width):
    hostile = "\x1b[31m[bold]x\n" * 30
    shown = to_text(stacks_of(ThreadStack(hostile, True, ((hostile, 1, hostile, hostile),)), name=hostile), width)
    assert len(shown.splitlines()) == 4
    assert max(map(len, shown.splitlines())) <= width
    assert "\x1b" not in shown
    assert "[bold]" in shown


def test_json_has_everything():
    content = json.loads(to_json(stacks_of(ThreadStack("MainThread", True, (*START, LOAD), -1))))
    (process,) = content["processes"]
    (thread,) = process["threads"]
    assert (content["session"], process["pid"], process["answered"], thread["hidden"]) == ("ppo_1", 7, "rlprof", None)
    assert thread["frames"][2] == {
        "file": "/project/train.py", "line": 5, "function": "load", "source": "lock.acquire()",
    }  # fmt: skip


def session_of(folder: Path, **info) -> Path:
    written = Written(folder)
    written.work("env_step", 1_000)
    written.flush()
    written.writer.describe(replace(INFO, **info))
    written.writer.close()
    return folder


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"host": "node-7"}, "was started on node-7. Run `rlprof stacks` there."),
        ({"host": os.uname().nodename, "pid": 2**22 + 1, "process": "gone"}, "was killed, so it has no stacks."),
    ],
)
def test_a_session_whose_process_is_not_here_is_an_error_of_one_sentence(info, message, tmp_path):
    with pytest.raises(RlprofError, match=message):
        request_stacks(session_of(tmp_path / "run", **info))


def test_a_session_that_has_ended_is_an_error_of_one_sentence(tmp_path):
    Written(tmp_path / "run").end()
    done = rlprof("stacks", tmp_path / "run", code=2)
    assert "has ended, so it has no stacks. Choose a session whose training is under way." in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["session.db"]


def test_a_process_that_does_not_answer_is_named(tmp_path):
    """This process runs, but records nothing."""
    folder = session_of(
        tmp_path / "run", host=os.uname().nodename, pid=os.getpid(), process=identity_of(os.getpid())
    )  # fmt: skip
    (process,) = request_stacks(folder, patience=0.2)
    assert process.answered == ""
    assert process.problem.startswith("The process did not answer.")
    assert not (folder / "requests").exists()
    assert process.problem.split()[0] in to_text(Stacks("run", "", (process,)), 80)


def test_a_forged_answer_shows_no_line_of_a_file_that_is_not_python(tmp_path):
    """Somebody who can write to the folder answers for the process, and names other files, also by a link."""
    secret, source, link = tmp_path / "secret.txt", tmp_path / "train.py", tmp_path / "linked.py"
    secret.write_text("the secret of the user\n")
    source.write_text("lock.acquire()\n")
    link.symlink_to(secret)
    folder = session_of(
        tmp_path / "run", host=os.uname().nodename, pid=os.getpid(), process=identity_of(os.getpid())
    )  # fmt: skip
    files = [str(secret), str(link), "../secret.txt", "/etc/passwd", "/dev/zero", str(source)]
    frames = [(file, 1, "load", "") for file in files]
    answer = Answer(os.getpid(), "", [AnsweredThread("MainThread", True, frames)])

    def forge():
        end = time.monotonic() + 30
        while not (waiting := pending(folder)):
            assert time.monotonic() < end
            time.sleep(0.01)
        (answers_of(waiting[0]) / f"{os.getpid()}.json").write_bytes(msgspec.json.encode(answer))

    forger = threading.Thread(target=forge)
    forger.start()
    (process,) = request_stacks(folder, patience=30)
    forger.join()
    shown = process.threads[0].frames
    assert [source for *_, source in shown] == [""] * 6


# ---- real programs ----

HEAD = """
import ctypes, multiprocessing, os, sys, threading, time
from rlprof import get_profiler, profile

def train(iterations=20):
    for _ in range(iterations):
        with get_profiler().iteration(), profile("env_step"):
            time.sleep(0.005)
    get_profiler().recording.flush()  # views know the iterations now

def hangs(api_key=None):
    print("ready", flush=True)
"""

DEADLOCK = (
    HEAD
    + """
    lock.acquire()  # this line hangs

lock = threading.Lock()
lock.acquire()
train()
with profile("update"):
    hangs(api_key="sk-abcdef1234567890abcdef")
"""
)

WORKER = (
    HEAD
    + """
    time.sleep(1000)  # this line hangs

def env(pipe, number):
    for step in range(1000):
        pipe.recv()
        with profile("env_step"):
            if number == 1 and step == 100:
                hangs()
        pipe.send(step)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    pipes = []
    for number in range(3):
        ours, theirs = context.Pipe()
        context.Process(target=env, args=(theirs, number), name=f"env-{number}", daemon=True).start()
        pipes.append(ours)
    for _ in range(1000):
        with get_profiler().iteration():
            for pipe in pipes:
                pipe.send(True)
            with profile("env_wait", wait=True):
                [pipe.recv() for pipe in pipes]
"""
)

HELD = (
    HEAD
    + """
    while True:
        ctypes.PyDLL(None).sleep(1000)  # this line hangs

train()
with profile("update"):
    hangs()
"""
)

HELD_IN_WORKER = WORKER.replace("time.sleep(1000)  # this line hangs", "ctypes.PyDLL(None).pause()  # this line hangs")
"""`pause` returns when the signal is handled, so that the training goes on."""


@contextmanager
def training(folder: Path, program: str, *arguments: str, **environment: str) -> Iterator[tuple[int, Path]]:
    """The process of a training that has come to its line that hangs, and its session."""
    script = folder / "train.py"
    script.write_text(program)
    command = [sys.executable, "-m", "rlprof", "run", "--quiet", "--dir", "runs", script.name, *arguments]
    with subprocess.Popen(
        command, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline() == "ready\n"
            (session,) = (folder / "runs").iterdir()
            end = time.monotonic() + 60
            while not list(session.glob("stacks/*.json")):
                assert time.monotonic() < end
                time.sleep(0.01)
            yield process.pid, session
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def place_of(program: str, thread: ThreadStack) -> tuple[str, str]:
    """The function and the statement of the program in which a thread is."""
    lines = program.splitlines()
    _, line, function, _ = next(frame for frame in reversed(thread.frames) if frame[0].endswith("train.py"))
    return function, lines[line - 1].strip()


@pytest.mark.long
@pytest.mark.parametrize("environment", [{}, NO_CORE], ids=["c", "python"])
def test_a_deadlock_of_the_driver_shows_its_line(environment, tmp_path):
    with training(tmp_path, DEADLOCK, **environment) as (pid, session):
        (driver,) = request_stacks(session)
        shown = rlprof("stacks", session, env={**os.environ, "COLUMNS": "80"}).stdout
        assert not (session / "requests").exists()
    assert (driver.pid, driver.name, driver.is_driver, driver.answered) == (pid, "train", True, RLPROF)
    assert place_of(DEADLOCK, driver.threads[0]) == ("hangs", "lock.acquire()  # this line hangs")
    assert "train (driver, process" in shown
    assert "in hangs\n      lock.acquire()" in shown
    assert "sk-abcdef" not in shown
    assert 'hangs(api_key="***")' in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.long
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_worker_that_hangs_shows_its_line(how, tmp_path):
    with training(tmp_path, WORKER, how) as (pid, session):
        end = time.monotonic() + 60
        while len(list(session.glob("stacks/*.json"))) < 4:
            assert time.monotonic() < end
            time.sleep(0.05)
        content = json.loads(rlprof("stacks", session, "--format", "json").stdout)
        driver, *workers = request_stacks(session)
    assert driver.pid == pid
    assert [worker.answered for worker in workers] == [RLPROF] * 3
    assert [process["pid"] for process in content["processes"]] == [process.pid for process in (driver, *workers)]
    assert place_of(WORKER, driver.threads[0])[1] == "[pipe.recv() for pipe in pipes]"
    places = sorted(place_of(WORKER, worker.threads[0]) for worker in workers)
    assert places == [("env", "pipe.recv()")] * 2 + [("hangs", "time.sleep(1000)  # this line hangs")]
    if how == "fork":
        assert [worker.name for worker in workers] == ["env-0", "env-1", "env-2"]
        assert place_of(WORKER, workers[1].threads[0])[0] == "hangs"


@LINUX
@pytest.mark.long
def test_native_code_that_holds_the_lock_shows_its_line_by_a_signal(tmp_path):
    with training(tmp_path, HELD) as (pid, session):
        (driver,) = request_stacks(session)
        shown = rlprof("stacks", session).stdout
        assert identity_of(pid) is not None, "the training goes on"
    assert driver.answered == SIGNAL
    main = driver.threads[0]
    assert (main.name, main.is_main) == ("MainThread", True)
    assert place_of(HELD, main) == ("hangs", "ctypes.PyDLL(None).sleep(1000)  # this line hangs")
    assert len(driver.threads) == 1, "rlprof's own thread is left out"
    assert "Native code holds Python's interpreter lock (GIL)" in shown
    assert "ctypes.PyDLL(None).sleep(1000)" in shown


@LINUX
@pytest.mark.long
def test_a_worker_whose_native_code_holds_the_lock_shows_its_line(tmp_path):
    with training(tmp_path, HELD_IN_WORKER, "fork") as (_, session):
        end = time.monotonic() + 60
        while len(list(session.glob("stacks/*.json"))) < 4:
            assert time.monotonic() < end
            time.sleep(0.05)
        driver, *workers = request_stacks(session, patience=30)
    assert [process.answered for process in (driver, *workers)] == [RLPROF, RLPROF, SIGNAL, RLPROF]
    assert place_of(HELD_IN_WORKER, workers[1].threads[0])[0] == "hangs"


@LINUX
@pytest.mark.long
def test_a_stopped_process_is_named_and_gets_no_signal(tmp_path):
    with training(tmp_path, DEADLOCK) as (pid, session):
        os.kill(pid, signal.SIGSTOP)
        shown = rlprof("stacks", session).stdout
        (driver,) = request_stacks(session)
        assert "stopped (SIGSTOP, Ctrl-Z, a debugger or a paused container)" in " ".join(shown.split())
        assert driver.threads == ()
        dump = next(session.glob("stacks/*.txt"))
        os.kill(pid, signal.SIGCONT)
        (driver,) = request_stacks(session)
        assert driver.answered == RLPROF
        assert dump.read_bytes() == b""


@pytest.mark.long
def test_two_views_at_once_both_get_the_stacks(tmp_path):
    with training(tmp_path, DEADLOCK) as (_, session):
        commands = [
            subprocess.Popen(
                [sys.executable, "-m", "rlprof", "stacks", str(session)], stdout=subprocess.PIPE, text=True
            )
            for _ in range(3)
        ]  # fmt: skip
        shown = {command.communicate(timeout=120)[0] for command in commands}
        assert not (session / "requests").exists()
    assert len(shown) == 1
    assert "lock.acquire()" in shown.pop()


@pytest.mark.long
def test_the_newest_running_session_is_the_default(tmp_path):
    environment = {**os.environ, "RLPROF_DIR": str(tmp_path / "runs")}
    with training(tmp_path, DEADLOCK):
        shown = rlprof("stacks", "--output", tmp_path / "stacks.json", env=environment)
        assert json.loads((tmp_path / "stacks.json").read_text())["processes"][0]["name"] == "train"
    assert "wrote" in shown.stderr


def test_without_a_session_the_command_says_so(tmp_path):
    done = rlprof("stacks", env={**os.environ, "RLPROF_DIR": str(tmp_path)}, code=2)
    assert done.stderr.startswith("rlprof: There is no session in ")
    assert done.stderr.count("\n") == 1
