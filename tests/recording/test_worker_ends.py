"""However workers and their driver end, and in any order, the session adds up, and no process is delayed."""

from __future__ import annotations

import os
import signal
import time

import pytest
from recording.worker_trainings import lanes_of, only_session, run_envs, run_script, run_training, start_training
from sessions import facts_of, rlprof

from rlprof.analysis.facts import KILLED
from rlprof.ledger import profiler as module

pytestmark = pytest.mark.skipif(module._core is None, reason="only the C core shares")


@pytest.mark.long
def test_a_worker_that_is_killed_in_the_middle(tmp_path):
    main = """
recording = record("run")
envs = Envs(recording, [0.004] * 3)
train(envs, iterations=10)
victim = envs.processes.pop(1)
envs.pipes[1].send(True)
time.sleep(0.002)
os.kill(victim.pid, signal.SIGKILL)
victim.join()  # a flush finds the ended process
envs.pipes.pop(1).close()
recording.flush()
with profile("idle_wait", wait=True):
    time.sleep(0.3)
train(envs, iterations=10)
envs.close()
print(victim.exitcode)
recording.stop()
"""
    out, facts = run_training(tmp_path, main)
    assert out == "-9\n"
    calls = lanes_of(facts, "env_step")
    assert calls["env-0"] == calls["env-2"] == 100
    assert 0 < calls.get("env-1", 50) <= 50
    assert facts.operation("idle_wait").ledger_ns > 0.25e9  # of 0.3: the dead worker does not work any more
    assert facts.breakdown.lanes.by_kind["process"] >= 2


@pytest.mark.long
def test_a_driver_that_is_killed(tmp_path):
    main = """
recording = record("run")
envs = Envs(recording, [0.004] * 3)
for process in envs.processes:
    print(process.pid)
print("started")
train(envs, iterations=10_000)
"""
    process = start_training(tmp_path, main)
    workers = []
    try:
        workers = [int(process.stdout.readline()) for _ in range(3)]
        assert process.stdout.readline() == "started\n"
        time.sleep(2.5)
        process.kill()
        process.wait()
        until = time.monotonic() + 30
        while any(len(os.listdir(f"/proc/{pid}/task")) > 1 for pid in workers):  # no driver requests anything any more
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        process.kill()
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        process.communicate()
    facts = facts_of(only_session(tmp_path))
    assert facts.ended == KILLED
    assert len(lanes_of(facts, "env_step")) == 3
    assert facts.operation("env_step").ledger_ns > 0
    shown = rlprof("report", "--full", only_session(tmp_path)).stdout
    assert "3 processes and 1 thread" in shown


@pytest.mark.long
def test_workers_that_outlive_the_recording(tmp_path):
    main = """
recording = record("run")
envs = Envs(recording, [0.004] * 2)
train(envs)
recording.stop()
print(sorted(path.name for path in recording.folder.iterdir()))
train(envs)
envs.close()
print(sorted(path.name for path in recording.folder.iterdir()))
"""
    out, facts = run_training(tmp_path, main)
    assert out == "['raw.json', 'session.db', 'summary.txt']\n" * 2
    calls = lanes_of(facts, "env_step")
    assert calls == {"env-0": 100, "env-1": 100}  # the last request came at the end of the recording


@pytest.mark.long
def test_a_worker_that_hangs_does_not_delay_the_end(tmp_path):
    main = """
recording = record("run")
envs = Envs(recording, [0.004] * 2)
train(envs)
time.sleep(1.2)
os.kill(envs.processes[0].pid, signal.SIGSTOP)
began = time.monotonic()
recording.stop()
print(time.monotonic() - began < 5)
os.kill(envs.processes[0].pid, signal.SIGCONT)
envs.close()
"""
    out, facts = run_training(tmp_path, main)
    assert out == "True\n"
    assert lanes_of(facts, "env_step")["env-1"] == 100


@pytest.mark.long
def test_a_terminated_worker_loses_a_second_at_most(tmp_path):
    main = """
recording = record("run")
envs = Envs(recording, [0.004] * 2)
train(envs)
recording.flush()
train(envs, iterations=2)
for process in envs.processes:
    process.terminate()
    process.join()
recording.stop()
"""
    _, facts = run_training(tmp_path, main)
    assert all(100 <= calls <= 110 for calls in lanes_of(facts, "env_step").values())


def test_a_second_recording_has_workers_of_its_own(tmp_path):
    main = """
for name in ("a", "b"):
    with record(name) as recording:
        envs = Envs(recording, [0.004] * 2)
        train(envs, iterations=4)
        envs.close()
"""
    run_script(tmp_path, main)
    for session in (tmp_path / "runs").iterdir():
        assert lanes_of(facts_of(session), "env_step") == {"env-0": 20, "env-1": 20}


@pytest.mark.long
def test_a_reset_in_the_driver_resets_all_workers(tmp_path):
    main = """
train(envs)
recording.flush()
profiler.reset()
recording.flush()
train(envs, iterations=4)
"""
    _, facts = run_envs(tmp_path, "[0.004] * 2", main)
    assert lanes_of(facts, "env_step") == {"env-0": 20, "env-1": 20}
    assert facts.progress.iterations == 4


def test_a_worker_that_records_a_session_of_its_own(tmp_path):
    main = """
recording = record("outer")
child = os.fork()
if child == 0:
    with profile("before"):
        pass
    with record("inner"), profile("update"):
        time.sleep(0.05)
    sys.exit()
os.waitpid(child, 0)
recording.stop()
"""
    run_script(tmp_path, main)
    inner, outer = sorted((tmp_path / "runs").iterdir())
    assert [item.operation for item in facts_of(inner).operations] == ["update"]
    assert [item.operation for item in facts_of(outer).operations] == ["before"]


def test_a_worker_goes_on_when_the_folder_is_deleted(tmp_path):
    main = """
import shutil
recording = record("run")
envs = Envs(recording, [0.004] * 2)
train(envs, iterations=4)
shutil.rmtree(recording.folder)
train(envs, iterations=4)
envs.close()
print([process.exitcode for process in envs.processes])
os._exit(0)
"""
    process = start_training(tmp_path, main)
    out, err = process.communicate(timeout=60)
    assert out == "[0, 0]\n"
    assert "Traceback" not in err


def test_results_are_the_same_with_and_without_a_recording(tmp_path):
    head = """
import multiprocessing, random
from rlprof import profile, record

def work(seed):
    chance = random.Random(seed)
    with profile("env_step"):
        return [chance.random() for _ in range(1_000)]

def results():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        with profile("collect", wait=True):
            return pool.map(work, range(20))
"""
    main = """
alone = results()
with record("run"):
    print(results() == alone)
"""
    out, _ = run_training(tmp_path, main, head)
    assert out == "True\n"


@pytest.mark.parametrize("damage", [b"", b"x" * 100, b"\0" * 4])
def test_a_damaged_dump_is_left_out(damage, tmp_path):
    main = f"""
train(envs, iterations=4)
(recording.folder / "workers" / f"{{envs.processes[0].pid}}-1.dump").write_bytes({damage!r})
recording.flush()
"""
    _, facts = run_envs(tmp_path, "[0.004] * 2", main)
    assert lanes_of(facts, "env_step") == {"env-0": 20, "env-1": 20}
