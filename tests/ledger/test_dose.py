"""Operations that are slowed down by a known part of what they cost."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import threading
import time

import pytest

from rlprof import Profiler
from rlprof.experiment.slowdown_memory import Slowdown, SlowdownMemory

pytestmark = pytest.mark.skipif(Profiler().core != "c", reason="only the C core slows operations down")


@pytest.fixture
def dosed(tmp_path):
    profiler = Profiler()
    doses = SlowdownMemory(tmp_path / "doses", ("env_step", "update"), create=True)
    profiler._ledger.dose(doses.memory, doses.names)
    profiler.enable()
    yield profiler, doses
    profiler.disable()


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize("held", [0.0, 0.5, 1.0])
def test_a_dose_is_a_part_of_a_calls_cpu_time(dosed, held):
    profiler, doses = dosed
    doses.set("env_step", Slowdown(spin=0.5, held=held))
    began = time.thread_time_ns()
    for _ in range(20):
        with profiler.profile("env_step"):
            compute(0.001)
        with profiler.profile("update"):
            compute(0.0005)
    spent = time.thread_time_ns() - began
    given = doses.counts("env_step")
    assert given.calls == 20
    assert given.cpu_ns >= 20e6
    assert given.added_ns == pytest.approx(given.cpu_ns / 2, rel=0.01)
    assert spent >= given.cpu_ns + given.added_ns + 10e6
    assert doses.counts("update").added_ns == 0
    assert doses.counts("update").calls == 20


def test_sleeping_is_dosed_by_duration_and_takes_no_cpu_time(dosed):
    profiler, doses = dosed
    doses.set("env_step", Slowdown(spin=1.0, sleep=1.0))
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    for _ in range(20):
        with profiler.profile("env_step"):
            time.sleep(0.002)
    given = doses.counts("env_step")
    assert time.perf_counter_ns() - wall >= 2 * 20 * 2e6
    assert time.thread_time_ns() - cpu < 20e6
    assert given.added_ns >= given.wall_ns


def test_of_calls_inside_calls_only_the_outermost_counts(dosed):
    profiler, doses = dosed
    with profiler.profile("env_step"), profiler.profile("other"), profiler.profile("env_step"):
        compute(0.001)
    assert doses.counts("env_step").calls == 1


def test_an_exception_that_ends_a_span_stays_what_it_was(dosed):
    profiler, doses = dosed
    doses.set("env_step", Slowdown(spin=1.0, held=1.0))
    with pytest.raises(KeyError, match="mine"), profiler.profile("env_step"):
        compute(0.001)
        raise KeyError("mine")
    assert doses.counts("env_step").added_ns > 0


def test_tasks_are_counted_and_left_alone(dosed):
    profiler, doses = dosed
    doses.set("env_step", Slowdown(spin=1.0))

    async def step() -> None:
        with profiler.profile("env_step"):
            await asyncio.sleep(0.001)

    asyncio.run(step())
    given = doses.counts("env_step")
    assert (given.calls, given.missed, given.added_ns) == (0, 1, 0)


def test_the_account_still_sums_to_the_wall_time(dosed):
    profiler, doses = dosed
    doses.set("env_step", Slowdown(spin=1.0))
    threads = [threading.Thread(target=_steps, args=(profiler,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    profiler.snapshot().check()


def _steps(profiler):
    for _ in range(5):
        with profiler.profile("env_step"):
            compute(0.0005)


def test_a_sample_tells_who_computes_without_the_gil(dosed):
    profiler, _ = dosed
    over = threading.Event()
    buffer = bytes(1 << 24)

    def python_code() -> None:
        while not over.is_set():
            with profiler.profile("env_step"):
                sum(range(100_000))

    def released() -> None:
        while not over.is_set():
            with profiler.profile("update"):
                hashlib.sha256(buffer)

    threads = [threading.Thread(target=work) for work in (python_code, released)]
    for thread in threads:
        thread.start()
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    rates = {}
    try:
        for name in ("env_step", "update"):
            samples = []
            while sum(sampled for sampled, _ in samples) < 50e6:
                samples.append(profiler._ledger.sample(name, 500_000))
                time.sleep(0.001)
            rates[name] = sum(got for _, got in samples) / sum(sampled for sampled, _ in samples)
    finally:
        sys.setswitchinterval(usual)
        over.set()
        for thread in threads:
            thread.join()
    assert rates["env_step"] < 0.25
    assert rates["update"] > 2 * rates["env_step"]


def test_wrong_use_is_said(tmp_path):
    profiler = Profiler()
    with pytest.raises(ValueError, match="too small"):
        profiler._ledger.dose(bytearray(10), ("env_step",))
    with pytest.raises((TypeError, BufferError)):
        profiler._ledger.dose(b"read only" * 100, ("env_step",))
    profiler._ledger.dose(bytearray(200), ("env_step",))
    with pytest.raises(RuntimeError, match="already"):
        profiler._ledger.dose(bytearray(200), ("update",))
