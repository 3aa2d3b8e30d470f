"""What a recorded training does about requests, and that it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from recording.worker_trainings import run_training
from sessions import run_program

from rlprof import Profiler, record
from rlprof.recording.recording import Recording
from rlprof.recording.requests import Requests
from rlprof.recording.stack_dump import current_threads
from rlprof.recording.stack_signal import StackSignal
from rlprof.session.reader import Session
from rlprof.session.recorded_process import RecordedProcess, dump_file, entry_file
from rlprof.session.requests import (
    CaptureRequest,
    StacksRequest,
    answers_of,
    pending,
    request_mark,
    withdraw,
    write_request,
)

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the signal is for Linux only")

WAITING = """
import os, signal, sys, time
from rlprof import profile, record
recording = record("run")
with profile("env_step"):
    pass
print(recording.folder, flush=True)
sys.stdin.readline()
"""


class Handled:
    """The requests of a session, with what came of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.marks: list[tuple[str, str]] = []
        self.warnings: list[str] = []
        self.captured: list[Path] = []
        self.requests = Requests(folder, lambda *mark: self.marks.append(mark), self._warn)

    def _warn(self, what: str, error: BaseException | None) -> None:
        self.warnings.append(f"{what}: {error}")

    def handle(self) -> None:
        self.requests.handle(self.captured.append)


@pytest.fixture
def handled(tmp_path):
    return Handled(tmp_path)


def test_a_mark_is_noted_once(handled):
    request_mark(handled.folder, "alert", "memory")
    handled.handle()
    handled.handle()
    assert handled.marks == [("alert", "memory")]
    assert not (handled.folder / "requests").exists()


def test_a_capture_stays_until_it_begins(handled):
    path = write_request(handled.folder, CaptureRequest("epoch", 1, 3))
    handled.handle()
    handled.handle()
    assert handled.captured == [path, path]
    withdraw(path)
    handled.handle()
    assert len(handled.captured) == 2


@pytest.mark.parametrize("content", [b"", b'{"request": "shutdown"}', b'{"request": "mark"}'])
def test_a_damaged_or_unknown_request_is_warned_of_and_removed(content, handled):
    path = write_request(handled.folder, CaptureRequest("epoch", 1, 3))
    path.write_bytes(content)
    request_mark(handled.folder, "alert", "memory")
    handled.handle()
    assert len(handled.warnings) == 1
    assert handled.marks == [("alert", "memory")], "the others are read all the same"
    assert pending(handled.folder) == []


def test_a_request_for_stacks_stays_for_the_other_processes(handled):
    path = write_request(handled.folder, StacksRequest())
    handled.handle()
    first = [file.stat().st_mtime_ns for file in answers_of(path).iterdir()]
    handled.handle()
    assert len(first) == 1
    assert [file.stat().st_mtime_ns for file in answers_of(path).iterdir()] == first, "it is answered once"
    assert pending(handled.folder) == [path]


def test_a_request_whose_requester_was_killed_expires(handled, monkeypatch):
    write_request(handled.folder, StacksRequest())
    handled.handle()
    monkeypatch.setattr("rlprof.recording.requests.EXPIRES_SECONDS", -1.0)
    handled.handle()
    assert not (handled.folder / "requests").exists()


def test_at_the_end_marks_are_noted_and_all_requests_are_removed(handled):
    write_request(handled.folder, CaptureRequest("epoch", 1, 3))
    write_request(handled.folder, StacksRequest())
    request_mark(handled.folder, "alert", "late")
    handled.requests.end()
    assert handled.marks == [("alert", "late")]
    assert list(handled.folder.iterdir()) == []


def test_the_last_mark_is_in_the_session(tmp_path):
    with record("run", dir=tmp_path, profiler=Profiler()) as recording:
        request_mark(recording.folder, "alert", "just before the end")
    with Session(recording.folder) as session:
        assert [(mark.kind, mark.text) for mark in session.marks()] == [("alert", "just before the end")]


def test_stacks_have_the_lines_of_each_thread_and_none_of_rlprof(tmp_path, actor):
    profiler = Profiler()
    recording = Recording(profiler, "run", tmp_path, {})
    with recording:
        recording.start()
        threads = {thread.name: thread for thread in current_threads()}
    assert threads["worker-0"].is_main is False
    main = threads["MainThread"]
    assert main.is_main
    file, line, function, _ = main.frames[-2]
    assert (file, function) == (__file__, "test_stacks_have_the_lines_of_each_thread_and_none_of_rlprof")
    assert "current_threads()" in Path(__file__).read_text().splitlines()[line - 1]
    assert not any("background.py" in frame[0] for thread in threads.values() for frame in thread.frames[:1])


def test_the_innermost_frames_of_a_deep_stack_are_kept():
    def descend(depth):
        return descend(depth - 1) if depth else current_threads()

    main = next(thread for thread in descend(300) if thread.is_main)
    assert len(main.frames) == 100
    assert main.hidden > 200
    assert main.frames[-1][2] == "current_threads"


def test_the_source_of_code_without_a_file_is_in_the_answer(tmp_path):
    program = """
import linecache
from rlprof.recording.stack_dump import current_threads
text = "def cell():\\n    return current_threads()\\n"
linecache.cache["<cell>"] = len(text), None, text.splitlines(True), "<cell>"
exec(compile(text, "<cell>", "exec"))
(main,) = cell()
print(main.frames[-2])
"""
    assert run_program(program, tmp_path).stdout == "('<cell>', 2, 'cell', 'return current_threads()')\n"


def entry_of(folder: Path, pid: int) -> RecordedProcess:
    """Waits until the process has announced itself."""
    end = time.monotonic() + 60
    while not entry_file(folder, pid).exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    return msgspec.json.decode(entry_file(folder, pid).read_bytes(), type=RecordedProcess)


@LINUX
def test_the_signal_dumps_the_stacks_and_is_gone_after_the_recording(tmp_path):
    program = (
        WAITING
        + """
recording.stop()
caught = next(line for line in open("/proc/self/status") if line.startswith("SigCgt"))
print(int(caught.split()[1], 16) >> 34, os.listdir(recording.folder))
"""
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "RLPROF_DIR": str(tmp_path)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        folder = Path(process.stdout.readline().strip())
        entry = entry_of(folder, process.pid)
        assert signal.SIGRTMIN < entry.signal < signal.SIGRTMAX
        os.kill(process.pid, entry.signal)
        dump = dump_file(folder, process.pid)
        end = time.monotonic() + 60
        while f"0x{entry.main:016x}" not in dump.read_text():
            assert time.monotonic() < end
            time.sleep(0.01)
        assert 'File "<string>", line 8 in <module>' in dump.read_text()
        caught, files = process.communicate("\n", timeout=60)[0].split(" ", 1)
    assert process.returncode == 0
    assert caught == "0"
    assert "stacks" in files, "a dump is kept"
    assert [file.name for file in (folder / "stacks").iterdir()] == [dump.name]


@LINUX
def test_a_signal_of_the_program_is_not_taken(tmp_path):
    program = """
import signal
from pathlib import Path
from rlprof.recording.stack_signal import StackSignal

handled = []
for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
    if number % 2:
        signal.signal(number, lambda *_: handled.append(1))
first = StackSignal()
number, file = first.install(Path("a"))
assert number % 2 == 0
other = StackSignal()
assert other.install(Path("b"))[0] not in (number, None)
signal.signal(number, lambda *_: handled.append(2))  # the program takes the signal later
first.remove()
signal.raise_signal(number)
assert handled == [2]
other.remove()
signal.pthread_sigmask(signal.SIG_BLOCK, [n for n in range(signal.SIGRTMIN, signal.SIGRTMAX + 1) if n % 2 == 0])
assert StackSignal().install(Path("c")) is None
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@LINUX
def test_a_file_that_the_program_opens_in_the_place_of_a_closed_one_is_not_closed(tmp_path):
    found = StackSignal()
    _, file = found.install(tmp_path / "dump")
    os.close(file)
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
    if other != file:
        os.dup2(other, file)
    try:
        found.remove()
        assert os.fstat(file).st_ino == (tmp_path / "other").stat().st_ino
    finally:
        os.close(file)


@LINUX
def test_a_program_without_free_descriptors_is_not_disturbed(tmp_path):
    program = """
import os, resource
from pathlib import Path
from rlprof.recording.stack_dump import StackAnswers
os.mkdir("stacks")
answers = StackAnswers(Path("."))
used = len(os.listdir("/dev/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (used - 1, used - 1))
answers.begin()
answers.answer()
answers.end()
print("the program goes on")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("the program goes on\n", "")
    assert list((tmp_path / "stacks").iterdir()) == []


def test_workers_announce_themselves_and_leave_nothing(tmp_path):
    out, _ = run_training(
        tmp_path,
        """
recording = record("run")
envs = Envs(recording, [0.001] * 2)
train(envs, iterations=4)
end = time.monotonic() + 60
while len(os.listdir(recording.folder / "stacks")) < 6 and time.monotonic() < end:
    train(envs, iterations=1)
found = sorted((recording.folder / "stacks").glob("*.json"))
pids = {os.getpid(), *(process.pid for process in envs.processes)}
print({int(path.stem) for path in found} == pids)
print(*sorted(name for path in found for name in [__import__("json").loads(path.read_text())["name"]]))
envs.close()
print(len(list((recording.folder / "stacks").glob("*.json"))))
recording.stop()
print(sorted(os.listdir(recording.folder)))
""",
    )
    assert out.splitlines() == ["True", " env-0 env-1", "1", "['raw.json', 'session.db', 'summary.txt']"]


@LINUX
def test_a_forked_worker_writes_to_a_file_of_its_own(tmp_path):
    out, _ = run_training(
        tmp_path,
        """
recording = record("run")
envs = Envs(recording, [0.001])
train(envs, iterations=4)
import json
(process,) = envs.processes
entry = recording.folder / "stacks" / f"{process.pid}.json"
end = time.monotonic() + 60
while not entry.exists() and time.monotonic() < end:
    train(envs, iterations=1)
os.kill(process.pid, json.loads(entry.read_text())["signal"])
own, driver = entry.with_suffix(".txt"), entry.with_name(f"{os.getpid()}.txt")
while "in env\\n" not in own.read_text() and time.monotonic() < end:
    time.sleep(0.01)
print("in env\\n" in own.read_text(), driver.read_text() == "")
envs.close()
recording.stop()
""",
    )
    assert out == "True True\n"
