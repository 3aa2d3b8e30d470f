"""The TensorBoard scalars, read with TensorBoard."""

from __future__ import annotations

import sys

import pytest
from sessions import sample
from timelines import BACKWARD, ITERATION, NASTY, ORIGIN, STARTED, Kept, training

from rlprof.errors import MissingLibraryError
from rlprof.export.tensorboard import write_tensorboard

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def scalars(folder):
    """{tag: [(wall time, step, value)]}"""
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    return {
        tag: [(event.wall_time, event.step, event.value) for event in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }


def written(session, folder):
    with session:
        write_tensorboard(session, folder / "events")
    return scalars(folder / "events")


@pytest.fixture
def found(tmp_path):
    return written(training(tmp_path), tmp_path)


def test_speed_has_the_iteration_as_step_and_its_real_time(found):
    ends = [(STARTED + (i + 1) * ITERATION) / 1e9 for i in range(3)]
    rates = found["rlprof_speed/steps_per_second"]
    assert [step for _, step, _ in rates] == [1, 2, 3]
    assert [time for time, _, _ in rates] == pytest.approx(ends, abs=1e-6)
    assert [value for *_, value in rates] == pytest.approx([100 * i / (ITERATION / 1e9) for i in (1, 2, 3)])
    assert [value for *_, value in found["rlprof_speed/seconds_per_iteration"]] == pytest.approx([ITERATION / 1e9] * 3)


def test_the_shares_of_an_iteration_sum_to_100_percent(found):
    shares = {tag: values for tag, values in found.items() if tag.startswith("rlprof_share_percent/")}
    for place in range(3):
        assert sum(values[place][2] for values in shares.values()) == pytest.approx(100, abs=1e-4)
    assert shares["rlprof_share_percent/backward"][0][2] == pytest.approx(100 * BACKWARD / ITERATION)
    assert {f"rlprof_share_percent/{name}" for name in NASTY} <= set(shares)


def test_cpu_and_memory_are_at_the_iteration_they_were_sampled_in(found):
    # Each sample was taken as its iteration ended, before the next one began.
    assert [(step, value) for _, step, value in found["rlprof_system/rss_bytes"]] == [(1, 1e6), (2, 2e6), (3, 3e6)]
    assert [(step, value) for _, step, value in found["rlprof_system/cpu_percent_of_a_core"]] == [(2, 91.0), (3, 92.0)]
    assert "rlprof_system/device_busy_percent" not in found


def test_samples_of_one_iteration_are_one_point(tmp_path):
    kept = Kept(tmp_path)
    with kept.iteration():
        kept.tick(100)
    kept.samples = [
        sample(ORIGIN + 10, cpu=10.0, rss=5),
        sample(ORIGIN + 20, cpu=40.0, rss=9, weight=2 * 10**9),
        sample(ORIGIN + 30, cpu=None, rss=7),
    ]
    found = written(kept.session(), tmp_path)
    assert [event[1:] for event in found["rlprof_system/cpu_percent_of_a_core"]] == [(1, 30.0)]
    assert [event[1:] for event in found["rlprof_system/rss_bytes"]] == [(1, 9.0)]


def test_without_iterations_a_step_is_a_second(tmp_path):
    kept = Kept(tmp_path)
    kept.work("env_step", 5)
    kept.samples = [sample(ORIGIN + i * 1_000_000_000) for i in range(3)]
    found = written(kept.session(), tmp_path)
    assert [step for _, step, _ in found["rlprof_system/rss_bytes"]] == [0, 1, 2]
    assert not any(tag.startswith("rlprof_speed/") for tag in found)


def test_a_second_export_replaces_the_first(tmp_path):
    with training(tmp_path) as session:
        for _ in range(2):
            write_tensorboard(session, tmp_path / "events")
    assert len(list((tmp_path / "events").iterdir())) == 1
    assert len(scalars(tmp_path / "events")["rlprof_speed/steps_per_second"]) == 3


def test_without_the_library_the_error_names_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto", None)
    with training(tmp_path) as session:
        with pytest.raises(MissingLibraryError, match=r"pip install 'rlprof\[tensorboard\]'"):
            write_tensorboard(session, tmp_path / "events")
    assert not (tmp_path / "events").exists()
