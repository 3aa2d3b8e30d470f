"""Measuring the machine: missing figures are None, and no process is left running."""

from __future__ import annotations

import ast
import importlib.util
import math
import os
import shlex
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from rlprof.doctor.machine import cores_and_memory, machine, software, speed
from rlprof.doctor.machine import torch as machine_torch
from rlprof.doctor.machine.cgroup import Limits, read_limits
from rlprof.doctor.machine.machine import measure_machine


def group(root: Path, folder: str, **files: str) -> None:
    (root / folder).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / folder / name.replace("__", ".")).write_text(text + "\n")


def limits(tmp_path: Path, membership: str) -> Limits:
    (tmp_path / "membership").write_text(membership)
    return read_limits(tmp_path / "membership", tmp_path)


def test_the_tightest_limit_of_the_v2_groups_around_it_holds(tmp_path):
    group(tmp_path, "outer", cpu__max="150000 100000", memory__max="max")
    group(tmp_path, "outer/inner", cpu__max="400000 100000", memory__max="8192")
    assert limits(tmp_path, "0::/outer/inner\n") == Limits(1.5, 8192)


def test_the_limits_of_v1_groups_are_read_whatever_their_mounts_are_called(tmp_path):
    group(tmp_path, "cpu,cpuacct/job", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    group(tmp_path, "memory/job", memory__limit_in_bytes="1000000")
    assert limits(tmp_path, "4:memory:/job\n3:cpu,cpuacct:/job\n0::/\n") == Limits(0.5, 1_000_000)


def test_a_container_that_sees_its_own_group_as_the_root_is_read(tmp_path):
    group(tmp_path, "memory", memory__limit_in_bytes="2000")
    group(tmp_path, "cpu", cpu__cfs_quota_us="200000", cpu__cfs_period_us="100000")
    assert limits(tmp_path, "4:memory:/docker/abc\n3:cpu:/docker/abc\n") == Limits(2.0, 2000)


@pytest.mark.parametrize("membership", ["", "nonsense", "0::/nowhere\n", "3:cpu:/\n4:memory:/\n"])
def test_without_limits_there_are_none(tmp_path, membership):
    group(tmp_path, "cpu", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    group(tmp_path, "memory", memory__limit_in_bytes=str(2**63 - 4096))
    group(tmp_path, ".", cpu__max="max 100000", memory__max="max")
    assert limits(tmp_path, membership) == Limits(None, None)


def test_without_proc_there_are_no_limits(tmp_path):
    assert read_limits(tmp_path / "absent", tmp_path) == Limits()


def test_usable_cores_are_the_least_that_any_limit_leaves():
    cores = cores_and_memory.Cores
    assert cores(logical=8).usable == 8
    assert cores(logical=8, affinity=4).usable == 4
    assert cores(logical=8, affinity=4, quota=1.5).usable == 1.5
    assert cores(logical=8, affinity=4, quota=6.0).usable == 4


def test_busy_cores_are_seen_and_guest_time_is_not_counted_twice(monkeypatch):
    times = namedtuple("times", "user nice system idle iowait steal guest")
    readings = iter([times(10, 0, 0, 100, 0, 0, 0), times(10.3, 0, 0.1, 100.4, 0.1, 0.1, 0.3)])
    monkeypatch.setattr(cores_and_memory.psutil, "cpu_times", lambda: next(readings))
    monkeypatch.setattr(cores_and_memory.time, "sleep", lambda _: None)
    cores = cores_and_memory.look_at_cores(Limits())
    assert cores.busy_share == pytest.approx(0.5)
    assert cores.stolen_share == pytest.approx(0.1)


def test_the_spread_is_that_of_the_slowest_twentieth():
    steady = speed.Steadiness(200, 100.0, 150, 900, 0.0, 0)
    assert steady.spread == pytest.approx(0.5)


def test_rounds_at_several_times_count_together():
    rounds = speed.Rounds()
    rounds.run(3)
    rounds.run(4)
    steady = rounds.steadiness()
    assert steady.rounds == 7
    assert 0 < steady.median_ns <= steady.p95_ns <= steady.worst_ns
    assert 0 <= steady.off_cpu_share < 1


def test_the_folder_of_sessions_is_the_nearest_that_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RLPROF_DIR", raising=False)
    assert cores_and_memory.folder_for_sessions() == "."
    (tmp_path / "rlprof-runs").mkdir()
    assert cores_and_memory.folder_for_sessions() == "rlprof-runs"
    monkeypatch.setenv("RLPROF_DIR", str(tmp_path / "not" / "yet"))
    assert cores_and_memory.folder_for_sessions() == str(tmp_path)


def test_fsync_leaves_no_file_and_is_not_measured_where_nothing_can_be_written(tmp_path):
    assert len(speed.measure_fsync(str(tmp_path), 3)) == 3
    assert list(tmp_path.iterdir()) == []
    assert speed.measure_fsync(str(tmp_path / "absent"), 3) == []


def test_processes_that_cannot_start_are_not_measured(monkeypatch):
    monkeypatch.setattr(speed.sys, "executable", "/nowhere/python")
    assert speed.measure_processes() == speed.Processes(None, None)


def test_a_copy_that_does_not_fit_is_not_measured(monkeypatch):
    monkeypatch.setattr(speed.psutil, "virtual_memory", lambda: SimpleNamespace(available=1 << 20))
    assert speed.measure_copy() is None


def test_one_thread_and_all_alternate():
    calls: list[object] = []
    timed = machine_torch._in_turns(lambda: calls.append("work"), 2, 4, calls.append)
    assert calls[:8] == [1, "work", "work", "work", 4, "work", "work", "work"]
    assert timed.one_ns is not None
    assert timed.all_ns is not None


def test_with_one_thread_there_is_nothing_to_compare():
    timed = machine_torch._in_turns(lambda: None, 2, 1, lambda _: None)
    assert timed.all_ns is timed.slowdown is None


def test_rare_long_calls_count_in_sustained_work(monkeypatch):
    """With all threads every tenth call takes 100 times longer: a median would not see it."""
    now, threads, calls = 0, 1, 0

    def work() -> None:
        nonlocal now, calls
        calls += 1
        now += 100_000_000 if threads > 1 and calls % 10 == 0 else 1_000_000

    def set_threads(number: int) -> None:
        nonlocal threads
        threads = number

    monkeypatch.setattr(machine_torch, "perf_counter_ns", lambda: now)
    timed = machine_torch._sustained(work, 2, set_threads)
    assert timed.one_ns == 1_000_000
    assert timed.slowdown == pytest.approx(10.9, rel=0.2)


@pytest.mark.long
def test_busy_neighbours_are_gone_afterwards():
    before = set(psutil.Process().children(recursive=True))
    with machine_torch._busy_cores(2) as number:
        assert number == 2
        deadline = time.monotonic() + 10
        while len(busy := list(set(psutil.Process().children(recursive=True)) - before)) < 2:
            assert time.monotonic() < deadline
        assert len(groups := {os.getpgid(process.pid) for process in busy}) == 1
        assert groups <= {process.pid for process in busy}
        assert {os.getsid(process.pid) for process in busy} == {os.getsid(0)}
    _, alive = psutil.wait_procs(busy, timeout=10)
    assert alive == []


def test_a_torch_that_cannot_be_imported_is_reported_and_the_rest_measured(monkeypatch):
    def broken(_cores: int) -> None:
        raise OSError("libcudart.so.12: cannot open shared object file")

    monkeypatch.setattr(machine, "find_spec", lambda name: name)
    monkeypatch.setattr(machine, "measure_torch", broken)
    monkeypatch.setattr(machine, "measure_numpy", lambda: "with numpy")
    assert machine._compute(1) == ("with numpy", "torch: OSError: libcudart.so.12: cannot open shared object file")


def test_without_torch_and_numpy_nothing_is_computed(monkeypatch):
    monkeypatch.setattr(machine, "find_spec", lambda _: None)
    assert machine._compute(1) == (None, None)


def test_numpy_has_no_second_number_of_threads():
    pytest.importorskip("numpy")
    compute = machine_torch.measure_numpy()
    assert compute.matrix.one_ns is None
    assert compute.matrix.slowdown is None
    assert compute.matrix_flops > 0
    assert compute.learning is None


@pytest.mark.long
def test_torch_has_its_number_of_threads_back():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        compute = machine_torch.measure_torch(1)
        assert compute.threads == torch.get_num_threads() == 2
        assert compute.crowded is not None
        assert compute.neighbours == 1
    finally:
        torch.set_num_threads(before)


def test_gpus_without_nvml_have_the_drivers_names(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(software, "_NVIDIA", tmp_path)
    assert software._gpus() == ()
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0" / "information").write_text("Model: \t\t NVIDIA H100\nIRQ: 5\n")
    assert software._gpus() == (software.Gpu("NVIDIA H100"),)


def test_nvml_has_memory_and_use_of_the_gpus(monkeypatch):
    class UnsupportedError(Exception):
        pass

    def refuse(_handle):
        raise UnsupportedError

    nvml = SimpleNamespace(
        NVMLError=UnsupportedError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda i: i,
        nvmlDeviceGetName=lambda _: b"NVIDIA H100",
        nvmlDeviceGetMemoryInfo=lambda _: SimpleNamespace(total=80, used=30),
        nvmlDeviceGetUtilizationRates=refuse,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert software._gpus() == (software.Gpu("NVIDIA H100", 80, 30, None),)
    nvml.nvmlDeviceGetUtilizationRates = lambda _: SimpleNamespace(gpu=50)
    assert software._gpus() == (software.Gpu("NVIDIA H100", 80, 30, 0.5),)


@pytest.mark.long
def test_a_quick_look_measures_this_machine_and_imports_no_torch():
    program = (
        "import sys; from rlprof.doctor.machine.machine import measure_machine; reported = []\n"
        "seen = measure_machine(True, reported.append)\n"
        "assert seen.quick and seen.compute is None and seen.processes is None and seen.compute_error is None\n"
        "assert seen.took_ns > 0 and seen.clock.pair_ns > 0 and seen.clock.span_ns > 0\n"
        "assert seen.steadiness.rounds == 200 and 4 < len(reported) == len(set(reported))\n"
        "assert not {'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.long
def test_the_measurements_are_of_this_machine():
    seen = measure_machine(quick=True)
    assert seen.cores.logical == os.cpu_count()
    assert 0 < seen.cores.usable <= seen.cores.logical
    assert math.ceil(seen.cores.usable) >= 1
    assert seen.memory.total == psutil.virtual_memory().total
    assert seen.software.python.version == sys.version.split()[0]
    for name, module in (("matplotlib", "matplotlib"), ("torch", "torch"), ("nvidia-ml-py", "pynvml")):
        assert (seen.software.libraries[name] is None) == (importlib.util.find_spec(module) is None)


def test_no_file_imports_torch_or_numpy_before_it_is_needed():
    for module in (cores_and_memory, machine, software, speed, machine_torch):
        for node in ast.parse(Path(module.__file__).read_text()).body:
            if isinstance(node, ast.Import):
                assert not {alias.name for alias in node.names} & {"torch", "numpy", "pynvml"}, module


@pytest.mark.long
def test_pip_can_install_rlprof_from_the_reported_source():
    source = software.look_at_software().source
    assert source is not None
    offline = ["--dry-run", "--no-index", "--no-build-isolation", "--quiet"]
    command = [sys.executable, "-m", "pip", "install", "--force-reinstall", "--no-deps", *offline, *shlex.split(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("written", "source"),
    [
        (None, "rlprof"),
        ('{"url": "file:///no/such/folder", "dir_info": {}}', None),
        ('{"url": "file:///tmp", "dir_info": {}}', "/tmp"),
        ('{"url": "https://host/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}', "git+https://host/r.git@abc"),
        ("[]", None),
    ],
)
def test_the_source_of_rlprof_is_what_pip_recorded(written, source, monkeypatch):
    found = SimpleNamespace(read_text=lambda _: written)
    monkeypatch.setattr(software.metadata, "distribution", lambda _: found)
    assert software._source() == source
