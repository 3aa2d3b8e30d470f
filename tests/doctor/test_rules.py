"""Every finding appears with its evidence, and not without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlprof.doctor import rules
from rlprof.doctor.machine.cores_and_memory import Cores, Disk, Memory
from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.machine.software import Gpu, Python, Software
from rlprof.doctor.machine.speed import Clock, Processes, Steadiness
from rlprof.doctor.machine.torch import Compute, Threading
from rlprof.doctor.rules import judge

MS = 1_000_000


def good_machine() -> Machine:
    """A machine without findings."""
    return Machine(
        cores=Cores(8, 8, None, 0.02, 0.0, 0.3, ("performance",), "acpi-cpufreq"),
        memory=Memory(32 << 30, 24 << 30, None, 2 << 30, 0, 16 << 30, 16 << 30),
        disk=Disk("runs", 100 << 30, "ext4", 700_000.0, 2_000_000),
        software=Software(
            system="Linux 6.1 x86_64",
            python=Python("3.12.1", "CPython", False, False, True),
            sqlite="3.45.0",
            libraries={"torch": "2.13.0", "numpy": "2.4.0", "matplotlib": "3.11.0"},
            thread_settings={"OMP_NUM_THREADS": "8", "MKL_NUM_THREADS": None},
        ),
        clock=Clock(60.0, "c", True, 80.0, 3.0, "tsc", "rseq"),
        steadiness=Steadiness(200, 1_000_000.0, 1_050_000, 1_400_000, 0.001, 2),
        copy_bytes_per_s=10e9,
        processes=Processes(15_000_000.0, 500_000.0),
        compute=Compute(
            library="torch",
            version="2.13.0",
            matrix=Threading(3_000_000.0, 1_000_000.0),
            acting=Threading(50_000.0, 50_000.0),
            import_ns=2_000_000_000,
            threads=8,
            interop_threads=8,
            learning=Threading(2_000_000.0, 1_500_000.0),
            crowded=Threading(4_000_000.0, 4_000_000.0),
            neighbours=8,
        ),
        took_ns=6_000_000_000,
    )


def barely_measured() -> Machine:
    """A sandbox in which little can be measured."""
    return Machine(
        cores=Cores(1),
        memory=Memory(1 << 30, 1 << 30),
        disk=Disk(".", None, None, 700_000.0, 2_000_000),
        software=Software("Darwin 24 arm64", Python("3.10.0", "CPython", False, False, None), "3.37.0", {}, {}),
        clock=Clock(60.0, "c", True, 80.0, 3.0, "monotonic", "syscall", "only x86-64 Linux has a TSC to read"),
        steadiness=Steadiness(200, 1_000_000.0, 1_050_000, 1_400_000, 0.001, None),
    )


def finding(machine: Machine, key: str) -> rules.Finding:
    (found,) = [finding for finding in judge(machine) if finding.key == key]
    return found


def keys(machine: Machine) -> list[str]:
    return [finding.key for finding in judge(machine)]


def part(name: str, **changes: Any) -> Machine:
    """A good machine with one part changed."""
    good = good_machine()
    return replace(good, **{name: replace(getattr(good, name), **changes)})


def test_without_evidence_there_is_no_finding():
    assert judge(good_machine()) == judge(barely_measured()) == ()
    assert judge(replace(good_machine(), compute=None, processes=None, quick=True)) == ()


GPU = Gpu("NVIDIA H100", 80 << 30, 0, 0.05)
# The key, the severity, a part and what makes the finding appear, what just does not, and its evidence.
CASES = [
    ("torch_threads", "bad", "compute", {"threads": 9}, {"threads": 8}, "9 threads"),
    ("slow_threads", "bad", "compute", {"crowded": Threading(4 * MS, 80 * MS)}, {"crowded": Threading(4 * MS, 4 * MS)},
     "20 times as long with 8 torch threads as with 1: 80.0 ms against 4.00 ms"),
    ("slow_threads", "hint", "compute", {"acting": Threading(50_000, 57_000)}, {"acting": Threading(50_000, 54_000)},
     "1.14 times as long with 8 torch threads as with 1: 57.0 us against 50.0 us"),
    ("slow_threads", "bad", "compute", {"learning": Threading(2 * MS, 5 * MS)}, {"learning": Threading(None, 5 * MS)},
     "2.5 times"),
    ("slow_threads", "bad", "compute", {"matrix": Threading(2 * MS, 4 * MS)}, {"matrix": Threading(2 * MS, None)},
     "512 x 512"),
    ("usable_cores", "hint", "cores", {"quota": 1.5}, {"quota": 8.0}, "a CPU quota (cgroup) leaves 1.5"),
    ("usable_cores", "hint", "cores", {"affinity": 4}, {"affinity": 8}, "CPU affinity leaves 4"),
    ("governor", "bad", "cores", {"governors": ("powersave",), "frequency_driver": "acpi-cpufreq"},
     {"governors": ("powersave",), "frequency_driver": "intel_pstate"}, "acpi-cpufreq"),
    ("busy", "bad", "cores", {"busy_share": 0.62}, {"busy_share": 0.2}, "62% of 8 cores"),
    ("stolen", "hint", "cores", {"stolen_share": 0.12}, {"stolen_share": 0.01}, "12%"),
    ("noisy", "hint", "steadiness", {"p95_ns": 1_900_000}, {"p95_ns": 1_200_000}, "one of twenty cases 1.90 ms"),
    ("noisy", "hint", "steadiness", {"off_cpu_share": 0.2}, {"off_cpu_share": 0.01}, "20.0% of the time off the CPU"),
    ("core_missing", "bad", "clock", {"core": "python", "core_built": False, "span_ns": 12_000.0}, {}, "12.0 us"),
    ("core_unused", "hint", "clock", {"core": "python"}, {"core": "c"}, "80 ns"),
    ("slow_clock", "bad", "clock", {"pair_ns": 1500.0}, {"pair_ns": 200.0}, "1500 ns"),
    ("tsc_refused", "hint", "clock", {"tsc_refusal": "the kernel does not time with the TSC"}, {"clock": "monotonic"},
     "the kernel does not time with the TSC"),
    ("cpu_time_off", "hint", "clock", {"cpu": "off"}, {"cpu": "syscall"}, "CPU time of threads"),
    ("little_memory", "bad", "memory", {"available": 1 << 30}, {"available": 8 << 30}, "1.00 GB"),
    ("swap", "hint", "memory", {"swap_used": 4 << 30}, {"swap_used": 100 << 20}, "4.00 GB"),
    ("swap", "bad", "memory", {"swap_used": 4 << 30, "available": 1 << 30}, {"swap_used": 0}, "4.00 GB"),
    ("small_shm", "hint", "memory", {"shm_total": 64 << 20}, {"shm_total": 8 << 30}, "64.0 MB"),
    ("slow_disk", "hint", "disk", {"fsync_ns": 120e6}, {"fsync_ns": 5e6}, "120 ms in runs"),
    ("disk_unwritable", "bad", "disk", {"fsync_ns": None}, {}, "runs"),
    ("little_disk", "bad", "disk", {"free": 200 << 20}, {"free": 5 << 30}, "200 MB"),
    ("network_disk", "hint", "disk", {"filesystem": "nfs4"}, {"filesystem": "xfs"}, "nfs4"),
    ("slow_spawn", "hint", "processes", {"spawn_ns": 700e6}, {"spawn_ns": 50e6}, "700 ms"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "severity", "name", "bad", "good", "evidence"), CASES)
def test_a_finding_appears_with_its_evidence_only(key, severity, name, bad, good, evidence):
    found = finding(part(name, **bad), key)
    assert found.severity == severity
    assert evidence in found.what
    assert found.why.endswith(".")
    assert found.fix
    assert key not in keys(part(name, **good))


def test_a_missing_core_is_compiled_from_where_rlprof_came_from():
    """Not by its name alone: pip would search an index, and rlprof is on none."""
    missing = part("clock", core="python", core_built=False)
    for source, command in ((None, "."), ("-e /src/rlprof", "-e /src/rlprof")):
        machine = replace(missing, software=replace(missing.software, source=source))
        assert finding(machine, "core_missing").fix.endswith(f": pip install --force-reinstall --no-deps {command}")


def test_a_debug_python_is_bad_and_an_unoptimized_one_a_hint():
    python = good_machine().software.python
    assert finding(part("software", python=replace(python, debug=True)), "debug_python").severity == "bad"
    assert finding(part("software", python=replace(python, optimized=False)), "python_build").severity == "hint"
    # An unknown build is no evidence. One finding about a debug build is enough.
    assert keys(part("software", python=replace(python, optimized=None))) == []
    assert keys(part("software", python=replace(python, debug=True, optimized=False))) == ["debug_python"]


def test_a_gpu_that_torch_cannot_use_is_bad():
    good = part("software", gpus=(GPU,))
    assert "a CPU build" in finding(good, "gpu_unused").what
    blind = replace(good, compute=replace(good.compute, cuda_build="12.8"))
    assert "built for CUDA 12.8 but finds no device" in finding(blind, "gpu_unused").what
    used = replace(good, compute=replace(good.compute, cuda_build="12.8", cuda_available=True))
    assert keys(used) == []
    assert keys(replace(good, compute=None)) == []


def test_a_gpu_that_others_use_is_named_with_its_number():
    good = good_machine()
    cuda = replace(good.compute, cuda_build="12.8", cuda_available=True)
    gpus = (GPU, replace(GPU, busy_share=0.8))
    machine = replace(good, compute=cuda, software=replace(good.software, gpus=gpus))
    assert keys(machine) == ["gpu_busy"]
    assert "GPU 1 (NVIDIA H100) is 80% busy" in finding(machine, "gpu_busy").what


def test_a_library_that_cannot_be_imported_is_bad():
    machine = replace(good_machine(), compute=None, compute_error="torch: OSError: libcudart.so.12")
    found = finding(machine, "compute_broken")
    assert "libcudart.so.12" in found.what
    assert found.fix.endswith(" torch")


def test_a_processor_without_tsc_is_no_finding():
    good = good_machine()
    arm = replace(good.software, system="Linux 6.1 aarch64")
    refused = replace(good.clock, tsc_refusal="only x86-64 Linux has a TSC to read", clock="monotonic")
    assert keys(replace(good, software=arm, clock=refused)) == []


def test_the_worst_of_several_slow_cases_is_reported():
    machine = part("compute", acting=Threading(50_000, 60_000), crowded=Threading(4 * MS, 40 * MS))
    assert "10 times" in finding(machine, "slow_threads").what


def test_threads_that_help_as_long_as_the_cores_are_free_are_not_just_forbidden():
    machine = part("compute", learning=Threading(4 * MS, 2 * MS), crowded=Threading(4 * MS, 40 * MS))
    assert "8 are 2.0x as fast as 1" in finding(machine, "slow_threads").fix
    slower = part("compute", learning=Threading(4 * MS, 5 * MS), crowded=Threading(4 * MS, 40 * MS))
    assert "as fast" not in finding(slower, "slow_threads").fix


def test_a_quota_below_one_core_still_leaves_a_thread_and_a_worker():
    machine = part("cores", quota=0.5)
    assert finding(machine, "torch_threads").fix == "export OMP_NUM_THREADS=1"
    assert "at most 1 workers" in finding(machine, "usable_cores").fix


def test_bad_things_come_first():
    machine = replace(part("cores", busy_share=0.9, quota=2.0), disk=replace(good_machine().disk, fsync_ns=None))
    severities = [finding.severity for finding in judge(machine)]
    assert severities == sorted(severities)
    assert set(severities) == {"bad", "hint"}
