"""The summary of traces whose every microsecond is known."""

from __future__ import annotations

import re

import pytest
from planted_trace import Planted, training

from rlprof.trace.analysis.summarize import summarize
from rlprof.trace.analysis.summary import SCHEMA_VERSION, IdleParts, Summary
from rlprof.trace.read import read_trace
from rlprof.trace.render.text import to_text

US = 1000


def summary_of(planted, folder):
    return summarize(read_trace(planted.write(folder)))


def test_a_device_is_busy_and_idle_for_known_reasons(tmp_path):
    found = summary_of(training(), tmp_path)
    (device,) = found.devices
    assert found.window == 2000 * US
    assert (device.busy, device.idle) == (600 * US, 1400 * US)
    assert device.why_idle == IdleParts(
        launching=2 * (20 + 80) * US, data=400 * US, sync=2 * (80 + 70) * US, host=2 * (200 + 50) * US, ending=0
    )


def test_phases_are_the_innermost_annotations_with_the_time_of_host_and_device(tmp_path):
    phases = {phase.name: phase for phase in summary_of(training(), tmp_path).phases}
    times = {name: (phase.wall // US, phase.cpu // US, phase.gpu // US, phase.overlapped // US, phase.idle // US)
             for name, phase in phases.items()}  # fmt: skip
    assert times == {
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": (400, 0, 0, 0, 400),
        # 200-350 host alone; 450-510 both; 510-520 the device alone; 520-600 neither.
        "rollout": (600, 300, 20, 120, 160),
        # 350-420 host alone, 420-450 both.
        "policy_forward": (200, 140, 0, 60, 0),
        # 600-670 neither, 670-800 host alone, 800-1000 both.
        "update": (800, 260, 0, 400, 140),
    }
    assert phases["policy_forward"].launched == 200 * US
    assert phases["update"].launched == 400 * US


def test_steps_operators_and_kernels(tmp_path):
    found = summary_of(training(), tmp_path)
    assert {step.name: step.ns for step in found.steps} == {"ProfilerStep#3": 1000 * US, "ProfilerStep#4": 1000 * US}
    operators = {total.name: total for total in found.operators}
    # aten::linear lasts 60, of which aten::addmm takes 40, of which the launch takes 10.
    assert (operators["aten::linear"].total, operators["aten::linear"].calls) == (40 * US, 2)
    assert operators["aten::addmm"].total == 60 * US
    assert operators["aten::addmm"].device == 200 * US
    assert operators["aten::item"].total == 20 * US
    assert {total.name: total.total for total in found.kernels} == {"gemm": 200 * US, "loss": 400 * US}


def test_syncs_name_the_code_that_waits(tmp_path):
    planted = training()
    planted.host("train.py(12): learn", 480, 600, "python_function")
    planted.host("torch/_tensor.py(40): item", 495, 600, "python_function")
    syncs = {
        (sync.call, sync.operator, sync.function, sync.phase): sync for sync in summary_of(planted, tmp_path).syncs
    }
    assert syncs.keys() == {
        ("cudaStreamSynchronize", "aten::item", "train.py(12): learn", "rollout"),
        ("cudaStreamSynchronize", "aten::item", "", "rollout"),
        ("cudaDeviceSynchronize", "", "", "update"),
    }
    assert syncs["cudaDeviceSynchronize", "", "", "update"].waited == 140 * US
    assert syncs["cudaDeviceSynchronize", "", "", "update"].calls == 2


def test_copies_by_direction_with_bytes_and_rate(tmp_path):
    planted = Planted(step=1000)
    copy = {"call": "cudaMemcpyAsync", "cat": "gpu_memcpy"}
    planted.launch(0, 5, 10, 110, "Memcpy HtoD (Pageable -> Device)", **copy, bytes=1_000_000)
    planted.launch(200, 205, 210, 310, "Memcpy HtoD (Pageable -> Device)", **copy, bytes=3_000_000)
    planted.launch(400, 405, 410, 420, "Memcpy DtoH (Device -> Pinned)", **copy, bytes=4)
    planted.launch(500, 505, 510, 520, "Memset (Device)", call="cudaMemsetAsync", cat="gpu_memset", bytes=64)
    planted.launch(600, 605, 610, 630, "Memcpy DtoD (Device -> Device)", **copy)
    copies = {item.direction: item for item in summary_of(planted, tmp_path).copies}
    to_device = copies["host to device"]
    assert (to_device.calls, to_device.total, to_device.bytes, to_device.small) == (2, 200 * US, 4_000_000, 0)
    assert to_device.rate == pytest.approx(20e9)
    assert (copies["device to host"].bytes, copies["device to host"].small) == (4, 1)
    assert copies["fill"].bytes == 64
    assert copies["device to device"].bytes is None
    assert copies["device to device"].rate is None


def test_kernels_shorter_than_their_launch_on_a_dry_device_are_launch_bound(tmp_path):
    planted = Planted(step=1000)
    planted.launch(0, 10, 20, 25, "tiny")  # dry, shorter than its launch
    planted.launch(30, 40, 50, 55, "tiny")  # the same
    planted.launch(60, 70, 80, 200, "long")  # dry, but longer
    planted.launch(90, 100, 200, 203, "tiny")  # short, but the device was busy until then
    found = summary_of(planted, tmp_path).launch_bound
    assert (found.kernels, found.bound, found.total) == (4, 2, 10 * US)
    assert found.names == (("tiny", 2),)
    assert (found.launch, found.kernel) == (10 * US, 5 * US)


def test_memory_peaks_and_where_they_were(tmp_path):
    planted = training()
    for ts, device, allocated, reserved in (
        (210, 1, 100, 512),
        (650, 1, 900, 1024),
        (700, 1, 300, 1024),
        (50, 0, 70, 0),
    ):
        planted.events.append(
            {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 100, "tid": 100, "ts": ts,
             "args": {"Total Reserved": reserved, "Total Allocated": allocated, "Bytes": allocated // 2,
                      "Device Type": device, "Device Id": -1 if device == 0 else 0, "Addr": 1}}
        )  # fmt: skip
    cpu, gpu = summary_of(planted, tmp_path).memory
    assert (cpu.device, cpu.allocated, cpu.reserved, cpu.changes) == ("CPU", 70, None, 1)
    assert (gpu.device, gpu.allocated, gpu.reserved, gpu.phase, gpu.changes, gpu.largest) == (
        "GPU 0", 900, 1024, "update", 3, 450,
    )  # fmt: skip


def test_two_devices_are_told_apart(tmp_path):
    planted = Planted(step=100)
    planted.launch(0, 5, 10, 60, device=0)
    planted.launch(5, 10, 10, 30, device=1)
    found = summary_of(planted, tmp_path)
    assert [(device.number, device.busy) for device in found.devices] == [(0, 50 * US), (1, 20 * US)]


def test_without_steps_the_window_is_all_that_was_recorded(tmp_path):
    planted = Planted()
    planted.host("aten::mm", 100, 150)
    planted.host("aten::relu", 150, 190)
    found = summary_of(planted, tmp_path)
    assert (found.window, found.steps, found.devices) == (90 * US, (), ())
    (phase,) = found.phases
    assert (phase.name, phase.wall, phase.cpu) == ("(unmarked)", 90 * US, 90 * US)


def test_ranks_come_from_the_header(tmp_path):
    path = training().write(tmp_path, distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8})
    found = summarize(read_trace(path))
    assert (found.rank, found.ranks) == (3, 8)
    other = summarize(read_trace(training().write(tmp_path, distributedInfo={"rank": "x"})))
    assert (other.rank, other.ranks) == (None, None)


def test_copies_beside_kernels_and_the_profilers_own_time(tmp_path):
    planted = Planted(step=1000)
    planted.launch(0, 5, 100, 400)
    planted.launch(5, 10, 300, 600, "Memcpy HtoD (Pinned -> Device)", call="cudaMemcpyAsync", cat="gpu_memcpy", bytes=8)
    planted.host("Profiler flush", 700, 750, "overhead")
    planted.host("Profiler flush", 740, 780, "overhead")
    planted.host("Profiler flush", 990, 1040, "overhead")  # the last 40 are after the step
    found = summary_of(planted, tmp_path)
    (device,) = found.devices
    assert (device.kernels, device.copies, device.busy, device.launches) == (300 * US, 300 * US, 500 * US, 1)
    assert found.profiler == 90 * US
    text = to_text(Summary(SCHEMA_VERSION, (found,)))
    for line in (r"computes \(kernels\) +30.0%", r"copies at the same time +10.0%", r"only copies +20.0%"):
        assert re.search(line, text), line
    assert "The profiler itself took 9.0% of the time." in text
