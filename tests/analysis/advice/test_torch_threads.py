"""More torch threads than help."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from advised import given, speaking, train_really
from sessions import Written, facts_of, sample

from rlprof.analysis.advice.torch_threads import torch_threads

torch = pytest.importorskip("torch")


@pytest.fixture
def threads():
    """Sets torch's threads, for this test only."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def one_thread(threads):
    threads(1)


def mlp(width):
    layers = [torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, width), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))


def updating(width, batch, seconds=0.9, seen=None):
    """`seen` gets the clocks' figures: cores that other threads of this process used, and seconds per update."""
    net = mlp(width)
    optimizer = torch.optim.Adam(net.parameters())

    def program(profiler):
        updates = 0
        wall, helpers = time.perf_counter(), time.process_time() - time.thread_time()
        while time.perf_counter() < wall + seconds:
            updates += 1
            with profiler.profile("loss"):
                loss = net(torch.zeros(batch, 8)).pow(2).mean()
            with profiler.profile("backward"):
                optimizer.zero_grad()
                loss.backward()
            with profiler.profile("optimizer_step"):
                optimizer.step()
        if seen is not None:
            wall = time.perf_counter() - wall
            seen.update(helpers=(time.process_time() - time.thread_time() - helpers) / wall, update=wall / updates)

    return program


def on_a_free_machine(facts):
    """Other programs on the machine are another reason for the same advice."""
    return replace(facts, resources=replace(facts.resources, machine_cpu_mean=60.0))


@pytest.mark.figures
def test_two_threads_for_tiny_operations_keep_another_core_busy(tmp_path, threads):
    threads(2)
    seen = {}
    facts = speaking(torch_threads, lambda: train_really(tmp_path, updating(width=64, batch=256, seen=seen)))
    if torch_threads(facts) is None and (seen["helpers"] < 0.5 or seen["update"] > 0.001):
        pytest.skip(f"others have the cores: helpers got {seen['helpers']:.2f}, an update took {seen['update']:.4f} s")
    finding = given(torch_threads(facts), "torch_threads")
    assert set(finding.operations) == {"loss", "backward", "optimizer_step"}
    assert "uses 2 threads" in finding.evidence[0]
    assert "OMP_NUM_THREADS=1" in finding.check


def test_one_thread_for_tiny_operations_is_right(tmp_path, one_thread):
    assert torch_threads(train_really(tmp_path, updating(width=64, batch=256))) is None


def test_two_threads_for_large_operations_are_right(tmp_path, threads):
    threads(2)
    assert torch_threads(on_a_free_machine(train_really(tmp_path, updating(width=512, batch=1024)))) is None


def contended(folder, on_cpu, machine_cpu):
    """Figures of two torch threads on two busy cores: operations of 50 ms, off the CPU half of the time, that took 1 ms
    on free cores."""
    written = Written(folder)
    for _ in range(5):
        for duration in [50_000_000] * 19 + [50_000_000, 1_000_000]:
            written.work("backward", duration, cpu=int(on_cpu * duration))
        written.samples.append(sample(written.fake.wall, cpu=100.0, machine_cpu=machine_cpu))
        written.flush()
    facts = facts_of(written.end())
    return replace(facts, resources=replace(facts.resources, torch_threads=2))


def test_threads_that_wait_for_each_other_on_busy_cores_gain_at_most_the_fastest_call(tmp_path):
    finding = given(torch_threads(contended(tmp_path, on_cpu=0.5, machine_cpu=100.0)), "torch_threads")
    mean = (20 * 50 + 1) / 21
    assert finding.gain.low < 1.1
    assert 1.5 < finding.gain.estimate < mean
    assert finding.gain.high >= mean  # as fast as its fastest call, with what a single number leaves open
    assert "50.0% of their time" in finding.evidence[-1]


def test_more_threads_than_cores_wait_for_each_other(tmp_path):
    """16 threads on 2 cores, set by the program, as torch itself makes one per core."""
    facts = contended(tmp_path, on_cpu=0.5, machine_cpu=60.0)
    facts = replace(facts, resources=replace(facts.resources, torch_threads=16))
    facts = replace(facts, session=replace(facts.session, cores=2, machine_cores=2))
    finding = given(torch_threads(facts), "torch_threads")
    assert "16 threads, but only 2 cores" in finding.cause
    assert "OMP_NUM_THREADS" not in finding.change + finding.check


def test_as_many_threads_as_the_machine_has_cores_are_torchs_own_choice(tmp_path):
    """A container with 2 of 16 cores."""
    facts = contended(tmp_path, on_cpu=0.5, machine_cpu=60.0)
    facts = replace(facts, resources=replace(facts.resources, torch_threads=16))
    facts = replace(facts, session=replace(facts.session, cores=2, machine_cores=16, command=["train.py"]))
    finding = given(torch_threads(facts), "torch_threads")
    assert finding.check == "rlprof compare 'run train.py' 'OMP_NUM_THREADS=1 run train.py'"


@pytest.mark.parametrize(("on_cpu", "machine_cpu"), [(0.95, 100.0), (0.5, 40.0)])
def test_long_operations_that_have_their_cores_may_use_threads(tmp_path, on_cpu, machine_cpu):
    assert torch_threads(contended(tmp_path, on_cpu, machine_cpu)) is None
