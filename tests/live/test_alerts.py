"""Conditions, and when they become alerts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sessions import Written, report_of, sample

from rlprof.errors import RlprofError
from rlprof.live.alerts import Alerts, reference_of
from rlprof.live.conditions import EVENTS, METRICS, parse
from rlprof.live.frame import Frame, Speed, Stuck, Usage

SECOND = 10**9
FRAME = Frame(
    folder=Path("runs/a"), name="a", state="running", started=0.0, written=0.0, age_s=0.0, wall_s=100.0,
    speed=Speed("step", now=1000.0), usage=Usage(memory=10 << 30),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("memory > 20GB", 20 << 30),
        ("memory>20 gb", 20 << 30),
        ("memory > 1.5 TB", 1.5 * 2**40),
        ("memory >= 123 kb", 123 << 10),
        ("steps_per_second < 1e3", 1000),
        ("gpu < 20%", 20),
        ("seconds_since_iteration > 5 min", 300),
    ],
)
def test_a_condition_has_a_value_in_base_units(text, value):
    condition = parse(text)
    assert condition.value == value
    assert condition.above == (">" in text)
    assert condition.first_s is None


@pytest.mark.parametrize(
    ("text", "fraction", "seconds"),
    [
        ("steps_per_second < 80% of first hour", 0.8, 3600),
        ("steps_per_second < 80 % of the first hour", 0.8, 3600),
        ("iterations_per_second < 50% of first 10 min", 0.5, 600),
        ("iterations_per_second < 50% of first 10 minutes", 0.5, 600),
        ("memory > 150% of first 2h", 1.5, 7200),
    ],
)
def test_a_condition_compares_with_the_start_of_the_training(text, fraction, seconds):
    condition = parse(text)
    assert (condition.value, condition.first_s) == (fraction, seconds)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not a condition"),
        ("memory", "is not a condition"),
        ("memory > lots", "is not a condition"),
        ("speed < 3", "`speed` .* is no figure. Choose one of steps_per_second"),
        ("memory > 20s", "`s` .* is no unit of memory. Units of memory: KB, MB, GB, TB"),
        ("memory > 20", "`memory > 20` needs a unit. Units of memory: KB, MB, GB, TB"),
        ("stuck > 3", "compared with nothing. Write `stuck` alone"),
        ("steps_per_second < 3 GB", "no unit of steps_per_second. Units of steps_per_second: none"),
        ("memory > 20GB of first hour", "needs a percentage"),
        ("gpu < 80% of first hour", "needs a percentage of steps_per_second"),
        ("steps_per_second < 80% of last week", "is no time. Write `of first hour`"),
        ("steps_per_second < 80% of first 0 min", "is no time"),
        ("__class__ > 3", "is no figure"),
    ],
)
def test_a_wrong_condition_is_refused_with_the_right_form(text, complaint):
    with pytest.raises(RlprofError, match=complaint):
        parse(text)


def test_every_figure_and_event_can_be_watched():
    usage = Usage(cpu=50.0, memory=10 << 30, memory_available=10 << 30, gpu=50.0, gpu_memory=10 << 30)
    known = replace(FRAME, usage=usage, open_s=50.0, window_iterations=500, window_ns=10 * SECOND)
    for name, metric in METRICS.items():
        unit = "" if "" in metric.units else "kb"
        assert parse(f"{name} > 1{unit}").found(known).startswith(name.replace("_", " "))
        assert parse(f"{name} < 1{unit}").found(known) is None
    for name in EVENTS:
        assert parse(name).found(known) is None


def test_an_alert_names_the_figure_and_the_limit():
    assert parse("memory > 9GB").found(FRAME) == "memory is 10.0 GB, above 9.00 GB"
    assert parse("memory > 11GB").found(FRAME) is None
    relative = parse("steps_per_second < 80% of first hour")
    assert relative.found(FRAME, reference=1500.0) == (
        "steps per second is 1,000, below 1,200 (80% of the 1,500 at first)"
    )
    assert relative.found(FRAME, reference=1200.0) is None
    assert relative.found(FRAME, reference=None) is None


def test_events_are_conditions():
    stuck = replace(FRAME, stuck=Stuck(0.0, 60.0, "env-3 is inside env_step since 14:02:11.", ()))
    assert parse("stuck").found(stuck) == "the training is stuck: env-3 is inside env_step since 14:02:11"
    assert parse("killed").found(replace(FRAME, state="killed")) == "the training was killed"
    assert parse("failed").found(replace(FRAME, state="ValueError: bad")) == "the training failed: ValueError: bad"
    for state in ("finished", "killed", "running"):
        assert parse("failed").found(replace(FRAME, state=state)) is None


def test_a_figure_of_a_run_that_has_ended_is_no_alert():
    assert parse("memory > 1GB").found(replace(FRAME, state="finished")) is None


def looks(text: str, frames: list[tuple[float, Frame]]) -> list[float]:
    """The times at which an alert was reported."""
    alerts = Alerts([parse(text)])
    return [now for now, frame in frames if alerts.look(frame, None, now)]


SLOW, FAST = replace(FRAME, speed=Speed("step", now=10.0)), FRAME


def test_an_alert_comes_once_after_it_has_held_long_enough():
    assert looks("steps_per_second < 100", [(float(now), SLOW) for now in range(100)]) == [20.0]
    assert looks("stuck", [(0.0, replace(FRAME, stuck=Stuck(0.0, 60.0, "", ())))]) == [0.0]


def test_a_short_break_begins_the_wait_again():
    frames = [(float(now), FAST if now == 15 else SLOW) for now in range(60)]
    assert looks("steps_per_second < 100", frames) == [36.0]


def test_the_same_alert_comes_again_only_after_a_calm_minute():
    frames = [(float(now), FAST if 30 <= now < 60 else SLOW) for now in range(120)]
    assert looks("steps_per_second < 100", frames) == [20.0]
    frames = [(float(now), FAST if 30 <= now < 100 else SLOW) for now in range(150)]
    assert looks("steps_per_second < 100", frames) == [20.0, 120.0]


def test_time_in_which_nobody_looked_does_not_count():
    assert looks("steps_per_second < 100", [(0.0, SLOW), (1.0, SLOW), (500.0, SLOW), (501.0, SLOW)]) == []


def test_the_reference_is_the_mean_of_the_first_seconds(written):
    for number in range(100):
        with written.fake.profiler.iteration():
            written.work("env_step", SECOND if number < 50 else 2 * SECOND)
            written.fake.profiler.add_steps(8)
    written.samples = [sample(number * SECOND, rss=(1 if number <= 50 else 3) << 30) for number in range(150)]
    report = report_of(written.end())
    assert reference_of("steps_per_second", 50, report) == 8
    assert reference_of("steps_per_second", 100, report) == pytest.approx(75 * 8 / 100)
    assert reference_of("iterations_per_second", 50, report) == 1
    assert reference_of("memory", 40, report) == 1 << 30
    assert reference_of("steps_per_second", 151, report) is None  # these seconds are not over


def test_a_report_is_read_only_until_the_reference_is_known(tmp_path):
    written = Written(tmp_path)
    for _ in range(100):
        with written.fake.profiler.iteration():
            written.work("env_step", SECOND)
            written.fake.profiler.add_steps(8)
    report = report_of(written.end())
    alerts = Alerts([parse("steps_per_second < 80% of first min"), parse("memory > 20GB")])
    assert not alerts.needs_report(replace(FRAME, wall_s=59.0))
    assert alerts.needs_report(replace(FRAME, wall_s=61.0))
    alerts.look(FRAME, report, 0.0)
    assert not alerts.needs_report(replace(FRAME, wall_s=61.0))
