"""Trainings that become slower, as a whole or because of one operation."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from advised import amdahl, at, given, share, spin, train, with_lines, work
from sessions import Written, facts_of

from rlprof.analysis.advice.notes import notes
from rlprof.analysis.advice.slowing_down import slowing_down
from rlprof.analysis.drift import drift, trend_of

MS = 1_000_000


def test_a_buffer_that_is_searched_as_it_grows_explains_the_slower_steps(tmp_path):
    def program(profiler):
        buffer = []
        for _ in range(70):
            profiler.iteration()
            with profiler.profile("env_step"):
                spin(0.002)
                buffer += [1.0] * 10_000
            profiler.add_steps(100)
            with profiler.profile("buffer_sample"):
                spin(4 * len(buffer) * 6e-9)  # as long as adding up four times takes
            work(profiler, "update", 0.001)

    facts = train(tmp_path, program)
    finding = given(slowing_down(facts), "slowing_down", share=share(facts, "buffer_sample"))
    assert finding.operations[0] == "buffer_sample"
    assert drift(facts.series).grown[0].explains > 0.5
    assert finding.gain.high > 1.3


def iterations(folder, times, count=100, steps=50):
    """A training whose operations take times(i) ms in iteration i, all planted."""
    written = Written(folder)
    for i in range(count):
        written.fake.profiler.iteration()
        for operation, ms in times(i).items():
            written.work(operation, int(ms * MS))
        if steps:
            written.fake.profiler.add_steps(steps)
    return facts_of(written.end())


@pytest.mark.parametrize(("steps", "unit"), [(50, "step"), (0, "iteration")])
def test_the_operation_that_grows_is_named_with_what_it_explains(tmp_path, steps, unit):
    """env_step grows from 20 to about 60 ms beside 40 ms of backward; loss from 10 to 20."""
    facts = iterations(
        tmp_path, lambda i: {"env_step": 20 + 0.4 * i, "backward": 40, "loss": 10 + 0.1 * i}, steps=steps
    )
    found = drift(facts.series)
    assert found.unit == unit
    assert [grown.operation for grown in found.grown] == ["env_step", "loss"]
    assert found.grown[0].explains == pytest.approx(0.8, abs=0.01)
    each = max(1, steps)
    # Iterations 10 to 99 are looked at: the quarters' means are at 20.5 and 88.5.
    assert found.grown[0].before_ns * each == pytest.approx((20 + 0.4 * 20.5) * MS, rel=0.001)
    assert found.grown[0].after_ns * each == pytest.approx((20 + 0.4 * 88.5) * MS, rel=0.001)
    assert found.before_ns * each == pytest.approx((70 + 0.5 * 20.5) * MS, rel=0.001)
    finding = given(slowing_down(facts), "slowing_down", share=share(facts, "env_step"))
    assert finding.operations == ("env_step", "loss")
    assert "80.0%" in finding.cause
    # As if env_step had gone on at the pace of iteration 20.5 from iteration 10 on: this part of its time is saved.
    excess = sum(0.4 * (i - 20.5) for i in range(10, 100))
    saved = excess / sum(20 + 0.4 * i for i in range(100))
    wall, env_step = (sum(a + b * i for i in range(3, 100)) for a, b in ((70, 0.5), (20, 0.4)))
    assert finding.gain.estimate == pytest.approx(amdahl(env_step / wall, 1 - saved), rel=0.001)


def test_the_hottest_line_of_what_grows_is_its_place(tmp_path):
    facts = iterations(tmp_path, lambda i: {"env_step": 20 + 0.4 * i, "backward": 40})
    lines = {"env_step": [at("env.py:5", "for seen in self.history:", 0.9)], "backward": [at("ppo.py:1", "b()", 1.0)]}
    assert given(slowing_down(with_lines(facts, lines)), "slowing_down").place.where == "env.py:5"


def test_where_everything_becomes_slower_alike_no_operation_is_blamed(tmp_path):
    facts = iterations(tmp_path, lambda i: {"env_step": 20 + 0.2 * i, "backward": 40 + 0.4 * i})
    assert slowing_down(facts) is None
    (note,) = notes(facts)
    assert note.rule == "slowed_machine"
    # 60 + 0.6 i ms per iteration: 72.3 ms on average in the first quarter of what is looked at, 113.1 in the last.
    assert "36.1% slower" in note.text
    assert "alike" in note.text


def test_a_training_that_becomes_slower_in_some_operations_is_not_slower_alike(tmp_path):
    """Three operations grow, none explains half of it, and the largest stays as it is."""
    names = ("env_step", "loss", "logging")
    facts = iterations(tmp_path, lambda i: {**dict.fromkeys(names, 10 + 0.3 * i), "backward": 40})
    assert slowing_down(facts) is None
    (note,) = notes(facts)
    assert "alike" not in note.text
    # 10 + 0.3 i ms per 50 steps, in the quarters around iterations 20.5 and 88.5.
    assert "grew most, from 323 us to 731 us per step" in note.text


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(lambda _: {"env_step": 20}, id="constant"),
        pytest.param(lambda i: {"env_step": 20 + 0.01 * i}, id="a trend too small to matter"),
        pytest.param(lambda i: {"env_step": 500 if i > 94 else 20}, id="a hold-up at the end"),
        pytest.param(lambda i: {"env_step": 60 - 0.4 * i}, id="faster and faster"),
        pytest.param(lambda i: {"env_step": 200 if i < 5 else 20}, id="a slow start"),
    ],
)
def test_a_training_that_does_not_slow_down_is_fine(tmp_path, times):
    assert slowing_down(iterations(tmp_path, times)) is None


def test_too_few_iterations_tell_nothing(tmp_path):
    assert drift(iterations(tmp_path, lambda i: {"env_step": 20 + 10 * i}, count=20).series) is None


def noise(chance, memory, count):
    """Neighbours are alike, as on a shared machine."""
    level = 0.0
    for _ in range(count):
        level = memory * level + (1 - memory**2) ** 0.5 * chance.gauss(0, 1)
        yield max(-3.0, min(3.0, level))


def with_times(facts, times):
    """The same facts, but their operations took other times."""
    columns = {name: tuple(int(ms * MS) for ms in values) for name, values in times.items()}
    walls = tuple(map(sum, zip(*columns.values())))
    return replace(facts, series=replace(facts.series, wall_ns=walls, ledger_ns=columns))


@pytest.mark.long
@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_noise_alone_does_not_trigger(tmp_path, memory):
    """Noise of 20 % in each of four operations: next to none of 400 runs seems to slow down."""
    facts = iterations(tmp_path, lambda _: {"env_step": 20})
    false = 0
    for seed in range(400):
        chance = random.Random(seed)
        names = ("env_step", "policy_forward", "update", "buffer_sample")
        times = {name: [20 * (1 + 0.2 * level) for level in noise(chance, memory, 100)] for name in names}
        false += slowing_down(with_times(facts, times)) is not None
    assert false / 400 <= 0.02


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_an_operation_that_grows_is_found_where_the_whole_is_too_noisy_to_show_it(tmp_path, memory):
    """buffer_sample grows from 2 to 22 ms beside 80 ms that vary by 15 %. The change of the whole is too small to
    detect."""
    facts = iterations(tmp_path, lambda _: {"env_step": 20})
    found = []
    for seed in range(100):
        env_step = [80 * (1 + 0.15 * level) for level in noise(random.Random(seed), memory, 100)]
        finding = slowing_down(
            with_times(facts, {"env_step": env_step, "buffer_sample": [2 + 0.2 * i for i in range(100)]})
        )
        named = finding is not None and finding.operations[0] == "buffer_sample" and "buffer_sample" in finding.cause
        found.append(named)
    assert sum(found) >= (90 if memory < 0.9 else 70)


def test_a_trend_is_the_planted_line_in_spite_of_outliers():
    x = [float(i) for i in range(120)]
    y = [5.0 + 2.0 * i for i in range(120)]
    y[7] = y[60] = y[113] = 1e9
    trend = trend_of(x, y)
    assert trend.slope == pytest.approx(2.0, rel=0.01)
    assert trend.start == pytest.approx(5.0, abs=1)
    assert trend.end == pytest.approx(243.0, abs=3)
    assert trend.z > 4
