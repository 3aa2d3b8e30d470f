"""Rules about what changes during a training: growing memory, falling speed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from advised import compute, given, speaking, spin, train, work
from sessions import Written, facts_of, sample

from rlprof import Profiler
from rlprof.analysis.advice.memory_growth import memory_growth
from rlprof.analysis.advice.slowing_down import slowing_down
from rlprof.analysis.drift import drift, trend_of
from rlprof.api import record

MB = 1 << 20
MS = 1_000_000


def growing(folder, grows, iterations=60):
    """Keeps 3 MB in each iteration that `grows` names. Flushes, and so samples, once per iteration."""
    profiler, kept = Profiler(), []
    with record("advised", dir=folder, profiler=profiler) as recording:
        for i in range(iterations):
            profiler.iteration()
            with profiler.profile("update"):
                spin(0.004)
                if grows(i):
                    kept.append(b"x" * (3 * MB))
            recording.flush()
    return facts_of(recording.folder)


def test_memory_that_an_iteration_keeps_is_reported_with_its_amount(tmp_path):
    facts = speaking(memory_growth, lambda: growing(tmp_path, lambda _: True))
    advice = given(memory_growth(facts), "memory_growth")
    assert advice.gain is None
    amount, unit, *_ = advice.evidence[1].removeprefix("That is ").split()
    assert unit == "MB"
    assert 1.5 < float(amount) < 6  # 3 MB, by a wall time that others on the machine share in


def test_memory_that_levels_off_after_the_start_is_fine(tmp_path):
    assert memory_growth(growing(tmp_path, lambda i: i < 30)) is None


def sampled(folder, sizes, iterations=10_000, **others):
    """One sample of `sizes` per second, and one iteration per sample for the first samples."""
    written = Written(folder)
    for second, size in enumerate(sizes, start=1):
        if second <= iterations:
            written.fake.profiler.iteration()
        written.work("update", 1_000 * MS)
        written.samples.append(sample(second * 1_000 * MS, rss=size, **{name: f(second) for name, f in others.items()}))
    return facts_of(written.end())


def test_the_growth_is_given_per_minute_and_per_iteration_and_until_memory_is_full(tmp_path):
    """10 MB per second, with 8 GB left on the machine: for 819 s, or 13m39s."""
    advice = given(memory_growth(sampled(tmp_path, [1024 * MB + 10 * MB * s for s in range(301)])), "memory_growth")
    assert "600 MB more memory per minute" in advice.title
    assert advice.evidence[1] == "That is 10.0 MB per iteration."
    assert "free memory (8.00 GB) lasts for 13m39s" in advice.evidence[-1]


@pytest.mark.parametrize("at_exit", [0, 1, 2, 3])
@pytest.mark.parametrize("seconds", [35, 60, 300])
def test_samples_taken_at_exit_hide_no_growth(tmp_path, seconds, at_exit):
    """From 0.30 to 1.47 GB, which the process gives back before the last samples are taken."""
    sizes = [int(1024 * MB * (0.30 + 1.17 * second / (seconds - 1))) for second in range(seconds)]
    facts = sampled(tmp_path, sizes + [310 * MB] * at_exit, iterations=seconds)
    advice = given(memory_growth(facts), "memory_growth")
    assert "to 1.47 GB after warm-up" in advice.evidence[0]


@pytest.mark.parametrize("iterations", [1, 300])
def test_memory_that_is_freed_during_the_training_is_fine(tmp_path, iterations):
    sizes = [300 * MB + 4 * MB * second for second in range(250)] + [310 * MB] * 50
    assert memory_growth(sampled(tmp_path, sizes, iterations=iterations)) is None


def test_growing_child_processes_are_named(tmp_path):
    facts = sampled(tmp_path, [1024 * MB] * 200, children_rss=lambda second: (500 + 5 * second) * MB)
    assert given(memory_growth(facts), "memory_growth").title.startswith("The child processes took 300 MB")


@pytest.mark.parametrize("end", [0.3, 0.5, 0.7, 0.85])
def test_growth_that_has_ended_is_fine_wherever_it_ended(tmp_path, end):
    sizes = [1024 * MB + 10 * MB * min(s, int(300 * end)) for s in range(300)]
    assert memory_growth(sampled(tmp_path, sizes)) is None


@pytest.mark.parametrize("seed", range(5))
def test_memory_that_goes_up_and_down_is_fine(tmp_path, seed):
    chance = random.Random(seed)
    sizes = [1024 * MB + int(chance.uniform(-100, 100) * MB) for _ in range(300)]
    assert memory_growth(sampled(tmp_path, sizes)) is None


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
                for _ in range(4):
                    compute(sum, buffer)
            work(profiler, "update", 0.001)

    facts = train(tmp_path, program)
    advice = given(slowing_down(facts), "slowing_down")
    assert advice.operations[0] == "buffer_sample"
    assert drift(facts.series).grown[0].explains > 0.5
    assert advice.gain[1] > 1.3


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
    """env_step grows from 20 to about 60 ms beside 40 ms of update; loss from 10 to 20."""
    facts = iterations(tmp_path, lambda i: {"env_step": 20 + 0.4 * i, "update": 40, "loss": 10 + 0.1 * i}, steps=steps)
    found = drift(facts.series)
    assert found.unit == unit
    assert [grown.operation for grown in found.grown] == ["env_step", "loss"]
    assert found.grown[0].explains == pytest.approx(0.8, abs=0.01)
    each = max(1, steps)
    # Iterations 10 to 99 are looked at: the quarters' means are at 20.5 and 88.5.
    assert found.grown[0].before_ns * each == pytest.approx((20 + 0.4 * 20.5) * MS, rel=0.001)
    assert found.grown[0].after_ns * each == pytest.approx((20 + 0.4 * 88.5) * MS, rel=0.001)
    assert found.before_ns * each == pytest.approx((70 + 0.5 * 20.5) * MS, rel=0.001)
    advice = given(slowing_down(facts), "slowing_down")
    assert advice.operations == ("env_step", "loss")
    assert "env_step explains 80.0% of it" in advice.title
    # From iteration 10 on, at 20.5's pace.
    excess = sum(0.4 * (i - 20.5) * MS for i in range(10, 100))
    assert advice.gain[1] == pytest.approx(1 / (1 - excess / facts.breakdown.wall_ns), rel=0.001)


def test_where_everything_becomes_slower_alike_no_operation_is_blamed(tmp_path):
    facts = iterations(tmp_path, lambda i: {"env_step": 20 + 0.2 * i, "update": 40 + 0.4 * i})
    advice = given(slowing_down(facts), "slowing_down")
    assert "no single operation" in advice.title
    assert "machine" in advice.action


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


def test_too_few_iterations_give_no_advice(tmp_path):
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
        advice = slowing_down(
            with_times(facts, {"env_step": env_step, "buffer_sample": [2 + 0.2 * i for i in range(100)]})
        )
        found.append(advice is not None and advice.operations[0] == "buffer_sample" and "buffer_sample" in advice.title)
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
