"""Summaries of real traces, against sums over plain lists of events."""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal

import pytest
from traces import real_traces, unpacked

from rlprof.trace.analysis.summarize import summarize
from rlprof.trace.read import read_trace

WORK = {"kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset"}
RUNTIME = {"cuda_runtime", "hip_runtime", "cuda_driver", "runtime"}
HOST = {"cpu_op", "operator", "user_annotation", "python_function"} | RUNTIME
US = 1000


def events_of(path):
    found = json.loads(unpacked(path), parse_float=Decimal)["traceEvents"]
    return [{**item, "cat": item["cat"].lower()} for item in found if item["ph"] == "X"]


def window_of(events):
    host = [item for item in events if not item["cat"].startswith("gpu_")]
    steps = [item for item in host if item["name"].startswith("ProfilerStep#")]
    chosen = steps or [item for item in events if item["cat"] in WORK | HOST]
    return min(item["ts"] for item in chosen), max(item["ts"] + item["dur"] for item in chosen)


def union(pairs):
    total, reach = Decimal(0), None
    for start, end in sorted(pairs):
        reach = start if reach is None else reach
        total += max(Decimal(0), end - max(start, reach))
        reach = max(reach, end)
    return total


@real_traces()
def test_busy_and_idle_are_all_of_the_window(path):
    events = events_of(path)
    low, high = window_of(events)
    found = summarize(read_trace(path))
    assert found.window / US == pytest.approx(float(high - low), abs=1)
    assert {device.number for device in found.devices} == {
        item["args"]["device"] for item in events if item["cat"] in WORK
    }
    for device in found.devices:
        mine = [item for item in events if item["cat"] in WORK and item["args"]["device"] == device.number]
        inside = [(max(item["ts"], low), min(item["ts"] + item["dur"], high)) for item in mine]
        busy = union([(start, end) for start, end in inside if end > start])
        assert device.busy / US == pytest.approx(float(busy), abs=1)
        assert device.busy + device.idle == found.window
        why = device.why_idle
        assert why.launching + why.data + why.sync + why.host + why.ending == device.idle
        assert sum(ns for _, ns in device.idle_in) == device.idle


@real_traces()
def test_copies_are_those_of_the_trace(path):
    expected = {}
    for item in events_of(path):
        if item["cat"] in WORK - {"kernel"}:
            total = expected.setdefault(item["name"], [0, Decimal(0), 0])
            total[0] += 1
            total[1] += item["dur"]
            total[2] += item["args"].get("bytes", 0)
    found = {item.name: item for item in summarize(read_trace(path)).copies}
    assert found.keys() == expected.keys()
    for name, (calls, took, size) in expected.items():
        assert found[name].calls == calls
        assert found[name].total / US == pytest.approx(float(took), abs=1)
        assert found[name].bytes in (size, None)


@real_traces()
def test_every_wait_for_the_device_is_there(path):
    waits = re.compile(r"Synchronize|^(cuda|hip|cu)Memcpy(?!.*Async)")
    mine = [item for item in events_of(path) if item["cat"] in RUNTIME and waits.search(item["name"])]
    found = summarize(read_trace(path)).syncs
    assert sum(sync.calls for sync in found) == len(mine)
    assert sum(sync.waited for sync in found) / US == pytest.approx(float(sum(item["dur"] for item in mine)), abs=1)


@real_traces()
def test_phases_are_all_of_the_window(path):
    found = summarize(read_trace(path))
    assert sum(phase.wall for phase in found.phases) == found.window
    for phase in found.phases:
        assert phase.cpu + phase.gpu + phase.overlapped + phase.idle == phase.wall
        assert min(phase.cpu, phase.gpu, phase.overlapped, phase.idle) >= 0


@real_traces()
def test_steps_are_those_that_the_profiler_marked(path):
    marked = [item for item in events_of(path) if "gpu" not in item["cat"]]
    expected = {item["name"]: float(item["dur"]) for item in marked if item["name"].startswith("ProfilerStep")}
    steps = summarize(read_trace(path)).steps
    assert {step.name: step.ns / US for step in steps} == pytest.approx(expected, abs=1)


@real_traces()
def test_kernels_sum_to_what_they_took(path):
    expected, found = Counter(), Counter()
    for item in events_of(path):
        if item["cat"] == "kernel":
            expected[item["name"]] += float(item["dur"])
    for total in summarize(read_trace(path)).kernels:
        found[total.name] += total.total / US
    assert dict(found) == pytest.approx(dict(expected), abs=1)
