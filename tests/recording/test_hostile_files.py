"""Whatever happens to the files of a running session, the training goes on."""

from __future__ import annotations

import marshal
import os
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from recording.worker_trainings import lanes_of, only_session, run_envs, run_training, start_training
from sessions import facts_of, run_program

from rlprof.ledger import profiler as module
from rlprof.recording import worker
from rlprof.session.reader import Session

shares = pytest.mark.skipif(module._core is None, reason="only the C core shares")

TRUNCATE = """
def cut(folder, size):
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "session.db":
            try:
                os.truncate(path, size)
            except OSError:
                pass
"""


@pytest.mark.long
@shares
@pytest.mark.parametrize("size", [0, 100])
def test_files_that_are_truncated_do_not_end_the_training(size, tmp_path):
    main = f"""
{TRUNCATE}
recording = record("run")
envs = Envs(recording, [0.001] * 2)
train(envs)
recording.flush()
cut(recording.folder, {size})
train(envs)
recording.flush()
cut(recording.folder, {size})
train(envs)
envs.close()
recording.stop()
print("trained")
"""
    process = start_training(tmp_path, main)
    out, err = process.communicate(timeout=120)
    assert (out, process.returncode) == ("trained\n", 0), err
    facts = facts_of(only_session(tmp_path))
    assert facts.operation("policy_forward").calls == 300
    assert lanes_of(facts, "env_step") == {"env-0": 300, "env-1": 300}


@shares
def test_the_shared_page_cannot_be_truncated(tmp_path):
    program = """
import os
from rlprof import record
recording = record("run")
page = recording.folder / "workers" / "shared"
size = page.stat().st_size
for change in (lambda: os.truncate(page, 0), lambda: page.write_bytes(b"")):
    try:
        change()
    except PermissionError:
        print("refused")
print(page.stat().st_size == size)
recording.stop()
"""
    done = run_program(program, tmp_path)
    assert done.stdout == "refused\nrefused\nTrue\n", done.stderr


@shares
def test_a_program_that_closes_the_file_of_the_page_keeps_what_it_opens_in_its_place(tmp_path):
    """No process can join any more, but the training goes on."""
    main = """
recording = record("run")
links = {path: os.readlink(path) for path in map("/proc/self/fd/{}".format, range(64, 200)) if os.path.islink(path)}
(page,) = (path for path, link in links.items() if "memfd" in link)
number = int(page.rpartition("/")[2])
os.close(number)
mine = os.dup2(os.open("/dev/null", os.O_RDWR), number)
os.set_inheritable(mine, False)
child = subprocess.run(
    [sys.executable, "-c", f"from rlprof import Profiler; from rlprof.recording.worker import join; "
     f"print(join(Profiler('c'), {str(recording.folder)!r}))"], capture_output=True, text=True)
assert child.stdout == "False\\n", child.stderr
recording.stop()
os.fstat(mine)  # rlprof has not closed it
"""
    _, facts = run_training(tmp_path, main)
    assert facts.ended == "finished"


def nested() -> bytes:
    """For marshal this is a set with one tuple, but computing the hash of that tuple takes longer than a lifetime."""
    pair: tuple = ()
    for _ in range(200):
        pair = (pair, pair)
    return b"<" + marshal.dumps([pair])[1:]


GARBAGE = {
    "nested": nested(),
    "arrays": b"\x91" * 5_000,
    "maps": b"\x81\xa3pid" * 1_000,
    "long": b"\xdd\xff\xff\xff\xff",
    "nothing": b"",
    "text": b"hello",
}


@pytest.mark.long
@shares
@pytest.mark.parametrize("kind", GARBAGE)
def test_a_dump_that_is_garbage_is_refused_at_once(kind, tmp_path):
    content = GARBAGE[kind]
    dump = zlib.crc32(content).to_bytes(4, "little") + content
    (tmp_path / "dump").write_bytes(dump)
    main = f"""
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))  # it ends, whatever happens
train(envs)
recording.flush()
target = recording.folder / "workers" / f"{{os.getpid()}}-1.dump"
target.write_bytes(open({str(tmp_path / "dump")!r}, "rb").read())
recording.flush()
train(envs)
"""
    _, facts = run_envs(tmp_path, "[0.001]", main)
    assert lanes_of(facts, "env_step") == {"env-0": 200}


@pytest.mark.long
@shares
def test_a_dump_larger_than_any_worker_writes_is_not_read(tmp_path):
    main = f"""
train(envs)
target = recording.folder / "workers" / f"{{os.getpid()}}-1.dump"
with open(target, "wb") as file:
    file.truncate({worker.MOST_BYTES + 1})
import tracemalloc
tracemalloc.start()
recording.flush()
peak = tracemalloc.get_traced_memory()[1]
assert peak < {worker.MOST_BYTES // 2}, peak
"""
    run_envs(tmp_path, "[0.001]", main)


@pytest.mark.long
@shares
def test_a_dump_with_impossible_figures_spoils_nothing(tmp_path):
    """A process writes rows without a parent, or more time than has passed."""
    main = """
import msgspec, zlib
train(envs)
recording.flush()
from rlprof.ledger.rows import LaneRow, NodeRow
fives = NodeRow(*[5] * 20, b"")
row = fives._replace(id=0, parent=77, lane=1, operation=-1)
huge = NodeRow(*[2**62] * 20, b"")._replace(id=0, parent=-1, lane=1, operation=-1)
for number, node in enumerate((row, huge)):
    dump = {"pid": 5, "parent": 1, "name": "x", "epoch": profiler.ledger.raw()["epoch"], "driver_iteration": 0,
            "begun": profiler.ledger.raw()["begun"], "steps": 0, "episodes": 0, "iterations": 0, "iterating": False,
            "learned": False, "trained": 0, "ancestors": [], "grouped": False,
            "operations": [], "lanes": [LaneRow(1, "thread", "main", False, True, 1, 0, 0, False)], "nodes": [node]}
    data = msgspec.msgpack.encode(dump)
    target = recording.folder / "workers" / f"{os.getpid()}-{number}.dump"
    target.write_bytes(zlib.crc32(data).to_bytes(4, "little") + data)
recording.flush()
train(envs)
"""
    _, facts = run_envs(tmp_path, "[0.001]", main)
    assert lanes_of(facts, "env_step") == {"env-0": 200}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_a_session_is_private_whatever_the_umask(umask, tmp_path):
    program = f"""
import os
os.umask(0)
from rlprof import profile, record
os.umask({umask})
recording = record("run")
with profile("env_step"):
    pass
recording.flush()
shown = sorted({{oct(path.stat().st_mode & 0o777) for path in recording.folder.rglob("*") if path.is_file()}})
print(oct(recording.folder.stat().st_mode & 0o777), oct((recording.folder / "workers").stat().st_mode & 0o777))
print(shown)
recording.stop()
"""
    done = run_program(program, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "0o700 0o700"
    assert second == "['0o600']"
    (session,) = tmp_path.iterdir()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in session.iterdir()}
    assert modes == dict.fromkeys(("session.db", "raw.json", "summary.txt"), 0o600)


def test_reading_a_session_does_not_block_its_writer(tmp_path):
    program = """
import sys
from rlprof import get_profiler, profile, record
recording = record("run")
recording._wake.set()
recording._thread.join()
recording._flusher.writer._connection.execute("PRAGMA busy_timeout = 0")
print("recording")
for line in sys.stdin:
    with get_profiler().iteration(), profile("env_step"):
        pass
    recording.flush()
    print("flushed")
recording.stop()
"""
    environment = {**os.environ, "RLPROF_DIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert process.stdout.readline() == "recording\n"
    (folder,) = tmp_path.iterdir()
    with Session(folder) as before:
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "flushed\n"
        assert before.snapshot().iterations == 0  # as it was when it was opened
        with Session(folder) as now:
            assert now.snapshot().iterations == 1
    _, err = process.communicate()
    assert err == ""


def hot_journal(folder: Path) -> None:
    """A process that dies in the middle of a commit."""
    program = f"""
import os, sqlite3
connection = sqlite3.connect({str(folder / "session.db")!r}, isolation_level=None)
connection.execute("PRAGMA journal_mode = PERSIST")
connection.execute("PRAGMA cache_size = 1")
connection.execute("PRAGMA cache_spill = 1")
connection.execute("BEGIN IMMEDIATE")
for name in ("node", "gain", "iteration", "operation"):
    connection.execute(f"DELETE FROM {{name}}")
for _ in range(50):
    connection.execute("INSERT INTO mark VALUES (1, hex(randomblob(2000)), 'x')")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_session_whose_writer_died_in_a_commit_has_the_state_before_it(tmp_path):
    program = """
import os
from rlprof import get_profiler, profile, record
recording = record("run")
for _ in range(7):
    with get_profiler().iteration(), profile("env_step"):
        pass
recording.flush()
os.kill(os.getpid(), 9)
"""
    done = run_program(program, tmp_path)
    assert done.returncode == -9
    (folder,) = tmp_path.iterdir()
    hot_journal(folder)
    journal = folder / "session.db-journal"
    assert journal.read_bytes()[:8] == bytes.fromhex("d9d505f920a163d7")  # not yet taken back
    assert facts_of(folder).operation("env_step").calls == 7
