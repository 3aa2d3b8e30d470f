"""Operations that are slowed down by a known fraction of their cost."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import threading
import time

import pytest
from ledger.helpers import in_threads

from rlprof import Profiler
from rlprof.ledger.rows import SLOWDOWN, SlowdownRecord

pytestmark = pytest.mark.skipif(Profiler().core != "c", reason="only the C core slows operations down")


class Slowed:
    """A profiler whose operations are slowed down, and the memory that says how."""

    def __init__(self) -> None:
        self.names = ("env_step", "update")
        self.memory = bytearray(SLOWDOWN.size * len(self.names))
        self.profiler = Profiler()
        self.profile = self.profiler.profile
        self.profiler.ledger.slow_down(self.memory, self.names)
        self.profiler.enable()

    def slow_down(self, name: str, **fractions: float) -> None:
        record = self.record(name)._replace(**fractions)
        SLOWDOWN.pack_into(self.memory, SLOWDOWN.size * self.names.index(name), *record)

    def record(self, name: str) -> SlowdownRecord:
        return SlowdownRecord(*SLOWDOWN.unpack_from(self.memory, SLOWDOWN.size * self.names.index(name)))


@pytest.fixture
def slowed():
    slowed = Slowed()
    yield slowed
    slowed.profiler.disable()


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize("held", [0.0, 0.5, 1.0])
def test_a_call_is_slowed_down_by_a_fraction_of_its_cpu_time(slowed, held):
    slowed.slow_down("env_step", spin=0.5, held=held)
    began = time.thread_time_ns()
    for _ in range(20):
        with slowed.profile("env_step"):
            compute(0.001)
        with slowed.profile("update"):
            compute(0.0005)
    spent = time.thread_time_ns() - began
    record = slowed.record("env_step")
    assert record.calls == 20
    assert record.cpu >= 20e6
    assert record.added == pytest.approx(record.cpu / 2, rel=0.01)
    assert spent >= record.cpu + record.added + 10e6
    assert slowed.record("update").added == 0
    assert slowed.record("update").calls == 20


def test_a_sleeping_call_is_slowed_down_by_a_fraction_of_its_duration(slowed):
    slowed.slow_down("env_step", spin=1.0, sleep=1.0)
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    for _ in range(20):
        with slowed.profile("env_step"):
            time.sleep(0.002)
    record = slowed.record("env_step")
    assert time.perf_counter_ns() - wall >= 2 * 20 * 2e6
    assert time.thread_time_ns() - cpu < 20e6
    assert record.added >= record.wall


def test_only_the_outermost_of_nested_calls_counts(slowed):
    with slowed.profile("env_step"), slowed.profile("other"), slowed.profile("env_step"):
        compute(0.001)
    assert slowed.record("env_step").calls == 1


def test_an_exception_that_ends_a_span_stays_what_it_was(slowed):
    slowed.slow_down("env_step", spin=1.0, held=1.0)
    with pytest.raises(KeyError, match="mine"), slowed.profile("env_step"):
        compute(0.001)
        raise KeyError("mine")
    assert slowed.record("env_step").added > 0


def test_tasks_are_counted_and_not_slowed_down(slowed):
    slowed.slow_down("env_step", spin=1.0)

    async def step() -> None:
        with slowed.profile("env_step"):
            await asyncio.sleep(0.001)

    asyncio.run(step())
    record = slowed.record("env_step")
    assert (record.calls, record.missed, record.added) == (0, 1, 0)


def test_the_account_still_sums_to_the_wall_time(slowed):
    slowed.slow_down("env_step", spin=1.0)

    def steps():
        for _ in range(5):
            with slowed.profile("env_step"):
                compute(0.0005)

    with in_threads(steps, steps, steps):
        pass
    slowed.profiler.snapshot().check()


@pytest.mark.figures  # threads that others keep off the CPU get nothing
def test_a_sample_shows_which_operation_computes_without_the_gil(slowed):
    over = threading.Event()
    buffer = bytes(1 << 24)

    def python_code() -> None:
        while not over.is_set():
            with slowed.profile("env_step"):
                sum(range(100_000))

    def released() -> None:
        while not over.is_set():
            with slowed.profile("update"):
                hashlib.sha256(buffer)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    rates = {}
    with in_threads(python_code, released):
        try:
            for name in ("env_step", "update"):
                samples = []
                while sum(sampled for sampled, _ in samples) < 50e6:
                    samples.append(slowed.profiler.ledger.sample(name, 500_000))
                    time.sleep(0.001)
                rates[name] = sum(got for _, got in samples) / sum(sampled for sampled, _ in samples)
        finally:
            sys.setswitchinterval(usual)
            over.set()
    assert rates["env_step"] < 0.25
    assert rates["update"] > 2 * rates["env_step"]


def test_wrong_use_is_refused():
    profiler = Profiler()
    with pytest.raises(ValueError, match="too small"):
        profiler.ledger.slow_down(bytearray(10), ("env_step",))
    with pytest.raises((TypeError, BufferError)):
        profiler.ledger.slow_down(b"read only" * 100, ("env_step",))
    profiler.ledger.slow_down(bytearray(200), ("env_step",))
    with pytest.raises(RuntimeError, match="already"):
        profiler.ledger.slow_down(bytearray(200), ("update",))
