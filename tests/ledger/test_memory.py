"""Peaks of resident memory inside spans."""

from __future__ import annotations

import gc
import os
import sys

import pytest
from ledger.helpers import in_thread

from rlprof import Profiler

MB = 1 << 20

pytestmark = [
    pytest.mark.figures,
    pytest.mark.skipif(
        not os.access("/proc/self/clear_refs", os.W_OK), reason="the kernel's high-water mark cannot be cleared here"
    ),
]


def allocate(size: int) -> None:
    block = bytearray(size)
    del block


def test_the_peak_is_found_though_it_is_gone_at_the_end(profiler):
    with profiler.profile("spike", track_memory=True):
        allocate(100 * MB)
    spike = profiler.snapshot().account("spike")
    assert 98 * MB < spike.memory_rise < 110 * MB
    assert spike.memory_peak > spike.memory_rise


def test_an_earlier_peak_is_not_a_later_spans(profiler):
    allocate(200 * MB)
    with profiler.profile("calm", track_memory=True):
        allocate(10 * MB)
    assert profiler.snapshot().account("calm").memory_rise < 20 * MB


def test_peaks_are_folded_into_the_spans_around(profiler):
    with profiler.profile("outer", track_memory=True):
        allocate(50 * MB)
        with profiler.profile("inner", track_memory=True):
            allocate(100 * MB)
        with profiler.profile("quiet", track_memory=True):
            pass
    snapshot = profiler.snapshot()
    assert 98 * MB < snapshot.account("outer").memory_rise < 115 * MB
    assert 98 * MB < snapshot.account("inner").memory_rise < 110 * MB
    assert snapshot.account("quiet").memory_rise < 5 * MB


def test_a_peak_before_an_inner_span_belongs_to_the_outer_span_only(profiler):
    with profiler.profile("outer", track_memory=True):
        allocate(100 * MB)
        with profiler.profile("inner", track_memory=True):
            allocate(20 * MB)
    snapshot = profiler.snapshot()
    assert snapshot.account("outer").memory_rise > 98 * MB
    assert snapshot.account("inner").memory_rise < 40 * MB


def test_a_span_on_another_thread_does_not_steal_the_peak(profiler):
    def work() -> None:
        with profiler.profile("worker", track_memory=True):
            pass

    with profiler.profile("main", track_memory=True):
        allocate(80 * MB)
        in_thread(work)
    assert profiler.snapshot().account("main").memory_rise > 78 * MB


def test_untracked_spans_have_no_peak_and_the_process_has_one(profiler):
    with profiler.profile("plain"):
        pass
    with profiler.profile("tracked", track_memory=True):
        pass
    snapshot = profiler.snapshot()
    assert snapshot.account("plain").memory_peak is None
    assert snapshot.process_peak >= snapshot.account("tracked").memory_peak > MB


def test_the_time_it_takes_is_rlprofs_own(profiler):
    with profiler.profile("outer"):
        for _ in range(200):
            with profiler.profile("inner", track_memory=True):
                pass
    snapshot = profiler.snapshot()
    outer = next(node for node in snapshot.nodes if node.operation == "outer")
    # Of its CPU time: where others have the core meanwhile, that is not rlprof's doing.
    assert outer.own_cost_ns > outer.cpu_ns / 2
    assert snapshot.rlprof_ns >= outer.own_cost_ns
    assert snapshot.account("outer").cpu_ns < outer.cpu_ns / 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_tracking_leaves_no_files_open(core):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        profiler = Profiler(core, clock="fake")
        profiler.enable()
        with profiler.profile("a", track_memory=True):
            pass
        profiler.disable()
        del profiler
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1
