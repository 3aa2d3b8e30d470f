"""The rule about a machine that other programs use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from advised import given, speaking, spin, train_really
from sessions import Written, facts_of, sample

from rlprof.analysis.advice.crowded_machine import crowded_machine

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
def test_a_training_among_other_programs_gets_advice(tmp_path, strangers):
    facts = speaking(crowded_machine, lambda: train_really(tmp_path, training(2.5)))
    advice = given(crowded_machine(facts), "crowded_machine")
    assert advice.operations == ("env_step",)
    assert 1.2 < advice.gain[1] < 8


def planted(folder, on_cpu, **figures):
    written = Written(folder)
    for second in range(1, 11):
        with written.fake.profiler.iteration():
            written.work("env_step", 900_000_000, cpu=int(on_cpu * 900_000_000))
            written.work("logging", 100_000_000, cpu=0)
        written.samples.append(sample(second * 10**9, **({"held_up": 45.0} | figures)))
    return facts_of(written.end())


def test_its_bound_is_a_training_that_always_has_its_core(tmp_path):
    facts = planted(tmp_path, 0.5, machine_cpu=100.0, cpu=45.0, held_up=44.0)
    advice = given(crowded_machine(facts), "crowded_machine")
    assert advice.gain == pytest.approx((1.0, 1 / 0.56))
    assert advice.evidence[2].endswith("processes used 0.45 cores.")


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
def test_a_training_with_free_cores_gets_no_advice(tmp_path, on_cpu, figures):
    assert crowded_machine(planted(tmp_path, on_cpu, **figures)) is None
