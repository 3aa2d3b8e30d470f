"""System samples cover this process and its children. What cannot be measured is None, not 0."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time

import pytest

from rlprof.recording import procfs, system
from rlprof.recording.system import SystemSampler


@pytest.fixture
def sampler():
    made = SystemSampler(time.monotonic_ns)
    yield made
    made.close()


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_the_first_sample_has_no_rates_but_sizes(sampler):
    first = sampler.sample()
    assert (first.cpu, first.children_cpu, first.machine_cpu) == (None, None, None)
    assert first.rss > 1 << 20
    assert first.machine_available > 1 << 20


@pytest.mark.figures
def test_cpu_is_this_processs_time_over_the_wall_time(sampler):
    sampler.sample()
    began, cpu = time.monotonic(), time.process_time()
    burn(0.3)
    time.sleep(0.3)
    used, elapsed = time.process_time() - cpu, time.monotonic() - began
    found = sampler.sample()
    assert found.cpu == pytest.approx(100 * used / elapsed, rel=0.1)
    assert found.children_cpu == 0.0  # a measured zero


@pytest.mark.figures
def test_childrens_time_counts_while_they_live_and_when_they_are_gone(sampler):
    program = """
import time
end = time.process_time() + 0.4
while time.process_time() < end:
    pass
print("done", flush=True)
input()
"""
    sampler.sample()
    began = time.monotonic()
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        alive = sampler.sample()
        assert alive.children == 1
        assert alive.children_rss > 1 << 20
        seconds = alive.children_cpu / 100 * (time.monotonic() - began)
        assert 0.35 < seconds < 0.9
    finally:
        child.communicate(b"\n")
    time.sleep(0.25)
    gone = sampler.sample()
    assert gone.children == 0
    assert gone.children_cpu is not None
    assert gone.children_cpu < 60  # its time is not counted a second time when it is waited for


def test_grandchildren_are_found():
    before = len(procfs.all_descendants(os.getpid()))  # what another test has left, a resource tracker
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        assert len(procfs.all_descendants(os.getpid())) == before + 2
    finally:
        child.communicate(b"\n")


def test_files_of_processes_that_have_ended_are_closed(sampler):
    sampler.sample()
    before = open_files()
    for _ in range(5):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        sampler.sample()
        child.communicate(b"\n")
    for _ in range(2):
        sampler._next_search = 0.0
        sampler.sample()
    assert open_files() <= before


def open_files() -> int:
    """Open files in /proc of other processes. Other files that this process opens meanwhile do not count."""
    links = (os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd"))
    return sum(link.startswith("/proc/") for link in links)


def test_an_interval_that_is_too_short_has_no_rates(sampler):
    sampler.sample()
    assert sampler.sample().cpu is None


def test_memory_is_what_the_kernel_reports(sampler):
    before = sampler.sample().rss
    with mmap.mmap(-1, 50 << 20) as block:  # new pages: what an allocator gives may have been there before
        block[::4096] = b"x" * (len(block) // 4096)
        assert sampler.sample().rss - before == pytest.approx(50 << 20, rel=0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_memory_counts_as_allocated_before_it_is_used(sampler):
    before = sampler.sample()
    with mmap.mmap(-1, 50 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        reserved = sampler.sample()
        block[::4096] = b"x" * (len(block) // 4096)
        filled = sampler.sample()
    assert reserved.allocated - before.allocated == pytest.approx(50 << 20, rel=0.1)
    assert reserved.rss - before.rss < 5 << 20
    assert filled.allocated - reserved.allocated < 5 << 20
    assert filled.rss - reserved.rss == pytest.approx(50 << 20, rel=0.1)


def test_without_proc_psutil_is_used(monkeypatch, sampler):
    monkeypatch.setattr(procfs, "_LISTS_CHILDREN", False)
    expected = sampler.sample()
    sampler._procfs.close()  # as where there is no /proc
    found = sampler.sample()
    assert found.rss == pytest.approx(expected.rss, rel=0.2)
    assert found.machine_available == pytest.approx(expected.machine_available, rel=0.2)


def test_no_gpu_is_not_an_idle_gpu(sampler):
    if system._Devices()._handles:
        pytest.skip("there is a GPU here")
    found = sampler.sample()
    assert (found.device_busy, found.device_memory) == (None, None)


def test_the_cost_of_a_sample_is_measured(sampler):
    sampler.sample()
    assert 0 < sampler.sample().cost < 100_000_000


@pytest.mark.figures
def test_looking_for_children_takes_a_bounded_share_of_the_time(sampler, monkeypatch):
    searched = []
    monkeypatch.setattr(system, "all_descendants", lambda pid: searched.append(pid) or burn(0.01) or [])
    sampler._next_search = 0.0
    for _ in range(20):
        sampler.sample()
    assert len(searched) == 1  # 10 ms: not again for 20 s
