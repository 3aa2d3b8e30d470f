"""Notes about the machine: other programs on its cores, too little memory, spans that cost too much."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from advised import speaking, spin, train, train_really, work
from sessions import Written, facts_of, sample

from rlprof import SpanCost
from rlprof.analysis.advice import advise
from rlprof.analysis.advice.notes import crowded_machine, little_memory, notes, rlprof_cost

STRANGER = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
print(os.getpid(), flush=True)
os.close(1)
end = time.monotonic() + 20
while time.monotonic() < end:
    pass
"""


@pytest.fixture
def strangers():
    """Programs that keep every core busy, and are no children of this process: their parent has left them."""
    pids = []
    for _ in range(2 * (os.cpu_count() or 1)):
        done = subprocess.run([sys.executable, "-c", STRANGER], stdout=subprocess.PIPE, text=True, check=True)
        pids.append(int(done.stdout))
    yield
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def training(seconds):
    def program(profiler):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with profiler.iteration(), profiler.profile("env_step"):
                spin(0.02)

    return program


@pytest.mark.figures
def test_a_training_among_other_programs_gets_a_note(tmp_path, strangers):
    facts = speaking(crowded_machine, lambda: train_really(tmp_path, training(2.5)))
    assert [note.rule for note in notes(facts)] == ["crowded_machine"]


def planted(folder, on_cpu, **figures):
    written = Written(folder)
    for second in range(1, 11):
        with written.fake.profiler.iteration():
            written.work("env_step", 900_000_000, cpu=int(on_cpu * 900_000_000))
            written.work("logging", 100_000_000, cpu=0)
        written.samples.append(sample(second * 10**9, **({"held_up": 45.0} | figures)))
    return facts_of(written.end())


def test_a_note_has_the_figures_and_is_no_finding(tmp_path):
    facts = planted(tmp_path, 0.5, machine_cpu=100.0, cpu=45.0, held_up=44.0)
    (note,) = notes(facts)
    assert note.rule == "crowded_machine"
    assert "44.0%" in note.text
    assert "of 4 cores" in note.text
    assert note.rule not in {finding.rule for finding in advise(facts)}


@pytest.mark.parametrize(
    ("on_cpu", "figures"),
    [
        (0.98, {"machine_cpu": 100.0, "cpu": 98.0}),  # it has its core
        (0.5, {"machine_cpu": 40.0, "cpu": 45.0}),  # the cores are free: it waits for something else
        (0.5, {"machine_cpu": 100.0, "cpu": 45.0, "children_cpu": 300.0}),  # its own children have them
        (0.5, {"machine_cpu": 100.0, "cpu": 45.0, "held_up": 2.0}),  # it sleeps
        (0.5, {"machine_cpu": None, "cpu": None}),
    ],
)
def test_a_training_with_free_cores_gets_no_note(tmp_path, on_cpu, figures):
    assert notes(planted(tmp_path, on_cpu, **figures)) == ()


@pytest.mark.parametrize(("left", "noted"), [(200, True), (8_000, False), (None, False)])
def test_memory_that_is_nearly_used_up_is_noted(tmp_path, left, noted):
    """The machine has 16 GB."""
    available = None if left is None else left << 20
    facts = planted(tmp_path, 1.0, machine_available=available, held_up=0.0)
    note = little_memory(facts)
    assert (note is not None) == noted
    assert not noted or ("200 MB" in note.text and "16.0 GB" in note.text)


COST = SpanCost(inside_ns=30.0, outside_ns=60.0)


def spans(around):
    """Many spans around this many seconds of work, with a planted cost per span."""

    def program(profiler):
        for _ in range(200):
            with profiler.profile("update"):
                for _ in range(100):
                    work(profiler, "feature_extraction", around + 30e-9)
                    spin(60e-9)

    return program, COST


def test_spans_around_nothing_are_reported_with_their_cost(tmp_path):
    facts = train(tmp_path, *spans(around=0.0))
    (note,) = notes(facts)
    assert note.rule == "rlprof_cost"
    assert "feature_extraction was called 20,000 times" in note.text


def test_spans_around_work_cost_next_to_nothing(tmp_path):
    assert rlprof_cost(train(tmp_path, *spans(around=0.0001))) is None
