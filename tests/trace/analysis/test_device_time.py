"""When devices and host worked in real traces, against sums over plain lists of events."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from traces import real_traces, unpacked

from rlprof.trace.analysis.calls import Calls
from rlprof.trace.analysis.devices import devices_of
from rlprof.trace.analysis.host import Host
from rlprof.trace.read import read_trace

WORK = ("kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset")


def complete(path):
    events = json.loads(unpacked(path), parse_float=Decimal)["traceEvents"]
    return [item for item in events if item["ph"] == "X"]


def union(pairs):
    total, reach = Decimal(0), min(start for start, _ in pairs)
    for start, end in sorted(pairs):
        total += max(Decimal(0), end - max(start, reach))
        reach = max(reach, end)
    return total


@real_traces()
def test_busy_time_is_the_union_of_what_ran(path):
    found = {device.number: device.busy.total for device in devices_of(read_trace(path))}
    expected = {}
    for item in complete(path):
        if item.get("cat") in WORK:
            expected.setdefault(item["args"]["device"], []).append((item["ts"], item["ts"] + item["dur"]))
    assert found.keys() == expected.keys()
    for device, pairs in expected.items():
        assert found[device] / 1000 == pytest.approx(float(union(pairs)), abs=1)


@real_traces()
def test_steps_are_those_that_the_profiler_marked(path):
    marked = [item for item in complete(path) if "gpu" not in item["cat"]]
    expected = {item["name"]: item["dur"] for item in marked if item["name"].startswith("ProfilerStep")}
    found = {step.name: (step.end - step.start) / 1000 for step in Host.of(read_trace(path)).steps}
    assert found.keys() == expected.keys()
    for name, duration in expected.items():
        assert found[name] == pytest.approx(float(duration), abs=1)


@real_traces()
def test_kernels_sum_to_what_they_took(path):
    trace = read_trace(path)
    expected = {}
    for item in complete(path):
        if item.get("cat") in ("kernel", "Kernel"):
            expected[item["name"]] = expected.get(item["name"], 0) + float(item["dur"])
    found = {}
    for total in Calls(trace, devices_of(trace)).kernels():
        found[total.name] = found.get(total.name, 0) + total.total / 1000
    assert found == pytest.approx(expected, abs=1)
