"""Workers of pools and of a DataLoader, whose functions have no spans: they are lanes, and their work is seen."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from alike import RUN, alone, execute, facts_of_program, only_session, recorded
from sessions import facts_of, report_of

from rlprof.analysis.facts import Facts
from rlprof.ledger import profiler as module

pytestmark = pytest.mark.skipif(module._core is None, reason="only the C core shares")

HEAD = """
import multiprocessing, sys, time
from concurrent.futures import ProcessPoolExecutor
from rlprof import profile

def work(number):
    time.sleep(0.05)
    return number

def refuse(number):
    raise ValueError(f"no {number}")

"""

POOLS = {
    "pool": "with multiprocessing.get_context('{method}').Pool(2) as pool:\n"
    "        print(pool.map(work, range(8), chunksize=1)); pool.close(); pool.join()",
    "apply": "with multiprocessing.get_context('{method}').Pool(2) as pool:\n"
    "        print([one.get() for one in [pool.apply_async(work, (i,)) for i in range(8)]]); pool.close(); pool.join()",
    "executor": "with ProcessPoolExecutor(2, multiprocessing.get_context('{method}')) as pool:\n"
    "        print(list(pool.map(work, range(8))))",
}


def run(folder: Path, main: str, head: str = HEAD) -> Facts:
    begin = "if __name__ == '__main__':\n    with profile('update'): pass"
    return facts_of_program(folder, f"{head}\n{begin}\n    {main}\n")


@pytest.mark.long
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("kind", POOLS)
def test_waiting_for_a_pool_is_attributed_to_its_tasks(kind, method, tmp_path):
    facts = run(tmp_path, POOLS[kind].format(method=method))
    task = facts.operation("pool_task")
    assert task.calls == 8
    assert task.category == "other"
    assert {on.kind for on in task.lanes} == {"process"}
    # Two at a time: at least four of them one after the other, and the driver has nothing else to do.
    assert task.ledger_ns >= 0.9 * 4 * 50e6


@pytest.mark.long
def test_a_pool_returns_and_raises_the_same_as_without_rlprof(tmp_path):
    main = """
    for make in (multiprocessing.Pool, ProcessPoolExecutor):
        with make(1) as pool:
            for act in (lambda: list(pool.map(work, [1, 2])), lambda: list(pool.map(refuse, [3]))):
                try:
                    print(act())
                except ValueError as error:
                    print(repr(error), str(error.__cause__).replace("\\n", "|"))
"""
    (tmp_path / "train.py").write_text(f"{HEAD}\nif __name__ == '__main__':\n    {main.strip()}\n")
    plain = alone(["train.py"], tmp_path)
    timed = recorded(["train.py"], tmp_path)
    assert plain.returncode == 0, plain.stderr
    assert "no 3" in plain.stdout
    assert timed.stdout == plain.stdout


LOADER = """
import torch
from rlprof import profile

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        torch.ones(10).sum()
        import time
        time.sleep(0.05)
        return index
"""


@pytest.mark.long
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_workers_of_a_data_loader_are_lanes_with_work(method, tmp_path):
    pytest.importorskip("torch")
    loader = f"torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1, multiprocessing_context={method!r})"
    facts = run(tmp_path, f"print([batch.tolist() for batch in {loader}])", LOADER)
    loading = facts.operation("data_loading")
    workers = [on for on in loading.lanes if on.kind == "process"]
    assert sum(on.calls for on in workers) == 3
    assert sum(on.ledger_ns for on in workers) > 0


@pytest.mark.long
def test_a_data_loader_without_workers_is_timed_once(tmp_path):
    pytest.importorskip("torch")
    facts = run(tmp_path, "list(torch.utils.data.DataLoader(Data(), batch_size=2))", LOADER)
    assert facts.operation("data_loading").calls == 3 + 1  # the last finds nothing more


@pytest.mark.long
def test_processes_have_different_names(tmp_path):
    (tmp_path / "simulator.py").write_text("from rlprof import profile\nwith profile('env_step'): pass\n")
    launcher = (
        "import subprocess, sys\n"
        "inline = ['-c', 'import simulator']\n"
        "for words in (inline, inline, ['-m', 'simulator'], ['simulator.py']):\n"
        "    subprocess.run([sys.executable, *words], check=True)\n"
    )
    done = execute([*RUN, "--", sys.executable, "-c", launcher], tmp_path)
    assert done.returncode == 0, done.stderr
    lanes = [on.lane for on in facts_of(only_session(tmp_path)).operation("env_step").lanes]
    assert len(set(lanes)) == 4
    assert sorted(lane.partition(" (")[0] for lane in lanes) == ["python -c", "python -c", "simulator", "simulator"]


JOINED = """
import threading, time

def compute():
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        pass

threads = [threading.Thread(target=compute) for _ in range(2)]
for thread in threads:
    thread.start()
from rlprof import profile
with profile("update"):
    pass
for thread in threads:
    thread.join()
"""


@pytest.mark.long
@pytest.mark.parametrize("busy", [True, False])
def test_threads_that_compute_without_spans_have_work(busy, tmp_path):
    program = JOINED if busy else JOINED.replace("thread_time", "monotonic").replace("pass", "time.sleep(0.2)", 1)
    (tmp_path / "train.py").write_text(program)
    assert recorded(["train.py"], tmp_path).returncode == 0
    report = report_of(only_session(tmp_path))
    assert report.facts.operation("thread_wait").idle_ns > 0
    assert [finding.rule for finding in report.findings.findings] == ([] if busy else ["lock_wait"])
