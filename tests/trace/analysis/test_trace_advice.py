"""Each rule gives advice where its cause was planted, with its figures, and nowhere else."""

from __future__ import annotations

import pytest
from planted_trace import Planted, training
from traces import real_traces

from rlprof.trace.analysis.summarize import summarize
from rlprof.trace.read import read_trace


def advice_of(planted, folder):
    found = summarize(read_trace(planted.write(folder)))
    for advice in found.advice:
        for sentence in (advice.title, *advice.evidence, advice.action, advice.check):
            assert sentence.endswith("."), sentence
    return {advice.rule: advice for advice in found.advice}


def busy():
    """A device that is never idle."""
    planted = Planted(step=1000)
    planted.launch(0, 5, 0, 1000)
    return planted


def test_a_busy_device_gets_no_advice(tmp_path):
    assert advice_of(busy(), tmp_path) == {}


def test_waiting_for_data(tmp_path):
    advice = advice_of(training(), tmp_path)["waiting_for_data"]
    assert advice.title == "20.0% of the time is spent waiting for data."
    assert advice.evidence[1] == "GPU 0 had nothing to do for 400 us of that."
    assert advice.gain == (1.0, pytest.approx(1 / 0.8))


def test_waiting_for_environments(tmp_path):
    planted = Planted(step=1000)
    planted.annotation("env_step", 0, 600)
    planted.launch(600, 605, 610, 1000)
    advice = advice_of(planted, tmp_path)["waiting_for_environments"]
    assert advice.title == "GPU 0 is idle for 60.0% of the time while environments step."
    assert advice.operations == ("env_step",)
    assert advice.gain == (1.0, pytest.approx(2.5))


def test_bound_by_launches(tmp_path):
    planted = Planted(step=1000)
    for start in range(0, 1000, 50):
        planted.launch(start, start + 10, start + 12, start + 14, "tiny")
    advice = advice_of(planted, tmp_path)["bound_by_launches"]
    assert "20 of 20 kernels found their device idle" in advice.evidence[0]
    assert advice.evidence[1] == "The median kernel takes 2.00 us, the median launch 10.0 us."


def test_synchronising(tmp_path):
    planted = Planted(step=1000)
    for start in range(0, 1000, 100):
        planted.launch(start, start + 5, start + 5, start + 60)
        planted.host("aten::item", start + 10, start + 100)
        planted.sync(start + 20, start + 100)
    advice = advice_of(planted, tmp_path)["synchronising"]  # but for the last, after which nothing is launched
    assert advice.title.startswith("GPU 0 is idle for 36.0% of the time because the host waits for its results")
    assert advice.evidence == ("cudaStreamSynchronize in aten::item: 10 calls and 800 us per step.",)


def test_pageable_copies_and_many_small_ones(tmp_path):
    planted = busy()
    copy = {"call": "cudaMemcpyAsync", "cat": "gpu_memcpy", "bytes": 64}
    for start in range(0, 1000, 8):
        planted.launch(start, start + 1, start, start + 2, "Memcpy HtoD (Pageable -> Device)", **copy)
    advice = advice_of(planted, tmp_path)
    assert advice["pageable_copies"].title == "Copies from or to pageable memory take 25.0% of the time."
    assert advice["many_small_copies"].title == "125 copies of up to 4 KB per step go between host and device."
    pinned = busy()
    for start in range(0, 400, 8):
        pinned.launch(start, start + 1, start, start + 2, "Memcpy HtoD (Pinned -> Device)", **copy)
    assert advice_of(pinned, tmp_path) == {}


def test_tiny_operators_on_a_cpu(tmp_path):
    planted = Planted(step=1000)
    for start in range(0, 1000, 10):
        planted.host("aten::add", start, start + 8)
    advice = advice_of(planted, tmp_path)["tiny_operators"]
    assert advice.title == "80.0% of the time is spent in operators of less than 10.0 us per call."
    assert advice.evidence == ("100 calls per step, 8.00 us each.",)
    large = Planted(step=1000)
    large.host("aten::mm", 0, 900)
    assert advice_of(large, tmp_path) == {}


@real_traces("v100_resnet50_workers0_run1", "v100_resnet50_workers4_run1")
def test_a_real_wait_for_data_is_the_first_thing_to_change(path):
    rules = [advice.rule for advice in summarize(read_trace(path)).advice]
    assert ("waiting_for_data" in rules[:1]) == ("workers0" in path.name)
