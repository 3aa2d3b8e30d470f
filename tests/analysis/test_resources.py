"""Use of the machine, against planted samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import Written, facts_of, sample

from rlprof.analysis.resources import POINTS, Resources

S = 1_000_000_000
MB = 1 << 20


def used(folder: Path, *samples, cpu: int = 0, seconds: int = 10) -> Resources:
    """A training of 10 s with the given samples; its one span computes for `cpu` ns."""
    written = Written(folder)
    written.work("update", seconds * S, cpu=cpu)
    written.samples = list(samples)
    return facts_of(written.end()).resources


def test_means_are_weighted_by_the_time_of_a_sample(tmp_path):
    found = used(
        tmp_path,
        sample(2 * S, weight=2 * S, cpu=100.0, machine_cpu=50.0, held_up=10.0),
        sample(10 * S, weight=8 * S, cpu=50.0, machine_cpu=None, held_up=0.0),
    )
    assert found.seconds == 10
    assert found.cpu_mean == pytest.approx((2 * 100 + 8 * 50) / 10)
    assert found.machine_cpu_mean == 50.0, "a sample without the figure does not count"
    assert found.held_up_mean == pytest.approx(2.0)
    assert found.device_busy_mean is None


def test_peaks(tmp_path):
    samples = [sample((i + 1) * S, rss=rss * MB, children_rss=own * MB, children=n, device_memory=None)
               for i, (rss, own, n) in enumerate([(10, 0, 0), (30, 8, 2), (20, 4, 1)])]  # fmt: skip
    found = used(tmp_path, *samples)
    assert found.rss_peak == 64 * MB, "the kernel's own peak, which the session has"
    assert (found.children_rss_peak, found.children_most) == (8 * MB, 2)
    assert found.device_memory_peak is None


def test_the_cost_of_sampling_is_percent_of_a_core(tmp_path):
    found = used(tmp_path, *(sample((i + 1) * S, cost=S // 100) for i in range(10)))
    assert found.sampling_share == pytest.approx(1.0)  # 10 x 10 ms of 10 s


def test_cpu_time_outside_of_lanes(tmp_path):
    """The process used 80 % of 10 s; its one lane 3 s of them."""
    assert used(tmp_path, sample(10 * S, weight=10 * S, cpu=80.0), cpu=3 * S).unseen_cpu_ns == 5 * S
    assert used(tmp_path / "less", sample(10 * S, weight=10 * S, cpu=10.0), cpu=3 * S).unseen_cpu_ns == 0


def test_many_samples_are_merged(tmp_path):
    """Two samples become one: the mean of their rates, the larger of their sizes, the time of the later."""
    samples = [sample((i + 1) * S, cpu=float(i % 2), rss=i * MB) for i in range(2 * POINTS)]
    columns = used(tmp_path, *samples, seconds=2 * POINTS).samples
    assert len(columns.time_ns) == POINTS
    assert columns.time_ns[:2] == (2 * S, 4 * S)
    assert set(columns.cpu) == {0.5}
    assert columns.rss[:3] == (1 * MB, 3 * MB, 5 * MB)


def test_samples_of_start_up_and_of_the_end_say_nothing_about_the_training(tmp_path):
    """Four seconds each of start-up, training and the end; a sample covers the second before it."""
    written = Written(tmp_path)
    written.work("startup", 4 * S)
    written.work("env_step", 4 * S)
    written.fake.profiler.add_steps(1)
    written.fake.tick(4 * S)
    written.samples = [sample(i * S, cpu=100.0 if 4 < i <= 8 else 7.0, rss=i * MB) for i in range(1, 13)]
    found = facts_of(written.end()).resources
    assert found.cpu_mean == pytest.approx(100, abs=20), "the sample at the border may be of both"
    assert found.samples.time_ns[0] == 5 * S
    assert found.samples.time_ns[-1] <= 9 * S
    assert found.rss_peak == 64 * MB


def test_a_run_without_training_keeps_its_samples(tmp_path):
    written = Written(tmp_path)
    written.work("startup", 4 * S)
    written.samples = [sample(i * S) for i in range(1, 5)]
    assert facts_of(written.end()).resources.seconds == 4


def test_without_samples_nothing_is_known(tmp_path):
    found = used(tmp_path)
    assert (found.seconds, found.cpu_mean, found.sampling_share, found.samples.time_ns) == (0, None, None, ())
