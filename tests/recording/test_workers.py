"""Worker processes are lanes of the session, and the time in which the driver waits for them is in their accounts."""

from __future__ import annotations

import pytest
from recording.worker_trainings import lanes_of, only_session, run_envs, run_training

from rlprof.ledger import profiler as module

pytestmark = pytest.mark.skipif(module._core is None, reason="only the C core shares")

METHODS = ["fork", "spawn", "forkserver"]


def is_complete(folder):
    return {path.name for path in only_session(folder).iterdir()} == {"session.db", "raw.json", "summary.txt"}


@pytest.mark.long
@pytest.mark.parametrize("how", METHODS)
def test_the_wait_for_environments_is_in_their_steps(how, tmp_path):
    main = """
envs.step()  # they are there
train(envs)
"""
    _, facts = run_envs(tmp_path, f"[0.004] * 3, {how!r}", main)
    assert lanes_of(facts, "env_step") == {"env-0": 101, "env-1": 101, "env-2": 101}
    assert {lane.kind for lane in facts.operation("env_step").lanes} == {"process"}
    in_steps, idle = facts.operation("env_step").ledger_ns, facts.operation("env_wait").ledger_ns
    assert in_steps > 100 * 0.004e9
    if how == "fork":  # else the wait for the interpreters' start is in it
        assert in_steps > 3 * idle
    assert sum(facts.series.calls["env_step"]) >= 300  # the first steps were before the first iteration
    assert sum(facts.series.ledger_ns["env_step"]) > 80 * 0.004e9
    assert facts.progress.steps == 303
    assert facts.breakdown.lanes.by_kind == {"process": 3, "thread": 1}
    assert is_complete(tmp_path)


def test_one_slow_worker_shows(tmp_path):
    _, facts = run_envs(tmp_path, "[0.003, 0.003, 0.015, 0.003]")
    by_lane = {lane.lane: lane.ledger_ns for lane in facts.operation("env_step").lanes}
    assert by_lane["env-2"] > 4 * max(by_lane[f"env-{i}"] for i in (0, 1, 3))
    assert facts.parallelism.workers[0].lane == "env-2"
    text = (only_session(tmp_path) / "summary.txt").read_text()
    assert "Worker 3 of 4 (env-2) steps environments " in text
    assert "4 processes and 1 thread" in text


@pytest.mark.long
def test_work_beside_the_driver_is_overlapped(tmp_path):
    main = """
for _ in range(30):
    for pipe in envs.pipes:
        pipe.send(True)
    with profile("update"):
        time.sleep(0.03)
    for pipe in envs.pipes:
        pipe.recv()
"""
    _, facts = run_envs(tmp_path, "[0.01] * 2", main)
    step = facts.operation("env_step")
    assert step.ledger_ns == 0
    assert step.overlapped_ns > 50 * 0.01e9


@pytest.mark.long
def test_a_pools_workers(tmp_path):
    head = """
import multiprocessing, os, time
from rlprof import get_profiler, profile, record

def rollout(i):
    with profile("env_step"):
        time.sleep(0.02)
    return i
"""
    main = """
recording = record("run")
with multiprocessing.get_context("fork").Pool(3) as pool:
    for _ in range(5):
        with profile("collect", wait=True):
            print(sum(pool.map(rollout, range(12), chunksize=1)))
    pool.close()
    pool.join()
recording.stop()
"""
    out, facts = run_training(tmp_path, main, head)
    assert out == "66\n" * 5
    assert sum(lanes_of(facts, "env_step").values()) == 60
    assert facts.operation("env_step").ledger_ns > 0.3e9


def test_a_plain_subprocess_that_joins(tmp_path):
    worker = tmp_path / "simulator.py"
    worker.write_text("""
import sys, time
from rlprof import get_profiler, profile
from rlprof.recording.worker import join
assert join(get_profiler(), sys.argv[1])
for line in sys.stdin:
    with profile("simulate"):
        time.sleep(0.01)
    print("done", flush=True)
""")
    main = """
recording = record("run")
process = subprocess.Popen([sys.executable, "simulator.py", str(recording.folder)], stdin=-1, stdout=-1, text=True)
for _ in range(20):
    process.stdin.write("step\\n")
    process.stdin.flush()
    with profile("wait_for_simulator", wait=True):
        process.stdout.readline()
process.stdin.close()
process.wait()
process.stdout.close()
recording.stop()
"""
    _, facts = run_training(tmp_path, main)
    assert lanes_of(facts, "simulate") == {"simulator": 20}
    assert facts.operation("simulate").ledger_ns > 0.19e9


def test_threads_and_children_of_workers(tmp_path):
    head = """
import multiprocessing, os, threading, time
from rlprof import get_profiler, profile, record

def step(seconds):
    with profile("env_step"):
        time.sleep(seconds)

def child():
    step(0.05)

def work():
    thread = threading.Thread(target=step, args=(0.05,), name="loader")
    thread.start()
    process = multiprocessing.get_context("fork").Process(target=child, name="grandchild")
    process.start()
    step(0.05)
    thread.join()
    process.join()
"""
    main = """
recording = record("run")
process = multiprocessing.get_context("fork").Process(target=work, name="worker")
process.start()
with profile("wait", wait=True):
    process.join()
recording.stop()
"""
    _, facts = run_training(tmp_path, main, head)
    assert lanes_of(facts, "env_step") == {"worker": 1, "worker/loader": 1, "grandchild": 1}
    assert facts.operation("env_step").ledger_ns > 0.05e9


@pytest.mark.long
def test_sixteen_workers(tmp_path):
    _, facts = run_envs(tmp_path, "[0.002] * 16", "train(envs, iterations=40)")
    assert lanes_of(facts, "env_step") == {f"env-{i}": 200 for i in range(16)}
    assert facts.operation("env_step").ledger_ns > facts.operation("env_wait").ledger_ns


@pytest.mark.long
def test_many_short_lived_workers_stay_bounded(tmp_path):
    """Each is a new process, as with data loaders in every epoch. Their sums are kept, but not all their lanes."""
    main = """
recording = record("run")
for i in range(100):
    child = os.fork()
    if child == 0:
        with profile("load"):
            pass
        sys.exit()
    os.waitpid(child, 0)
    if i % 5 == 0:
        recording.flush()
recording.stop()
"""
    _, facts = run_training(tmp_path, main)
    assert facts.operation("load").calls == 100
    assert sum(facts.operation("load").histogram.values()) == 100
    assert len(facts.operation("load").lanes) <= 64


def test_a_training_without_workers_has_no_lanes_or_files_of_workers(tmp_path):
    main = """
recording = record("run")
recording.flush()
print(sorted(path.name for path in (recording.folder / "workers").iterdir()), threading.active_count())
with profile("update"):
    pass
recording.stop()
"""
    out, facts = run_training(tmp_path, main)
    assert out.startswith("['shared']")
    assert facts.breakdown.lanes.by_kind == {"thread": 1}
    assert is_complete(tmp_path)


def test_a_process_that_records_nothing_gets_no_thread_and_writes_nothing(tmp_path):
    main = """
recording = record("run")
child = os.fork()
if child == 0:
    before = len(os.listdir("/proc/self/task"))
    with profile("env_step"):
        pass
    time.sleep(0.1)
    print(before, len(os.listdir("/proc/self/task")), flush=True)
    os._exit(0)
os.waitpid(child, 0)
silent = os.fork()
if silent == 0:
    sys.exit()
os.waitpid(silent, 0)
print([name for name in os.listdir(recording.folder / "workers") if name.startswith(str(silent))])
recording.stop()
"""
    out, _ = run_training(tmp_path, main)
    assert out == "1 4\n[]\n"  # one that writes, one that notices stops, one that samples
