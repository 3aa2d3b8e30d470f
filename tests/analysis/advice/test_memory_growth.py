"""Memory that grows and does not level off."""

from __future__ import annotations

import random

import pytest
from advised import at, given, speaking, spin, with_lines
from sessions import Written, facts_of, sample

from rlprof import Profiler
from rlprof.analysis.advice.memory_growth import memory_growth
from rlprof.analysis.code import Growth
from rlprof.api import record

MB = 1 << 20
MS = 1_000_000


def growing(folder, grows, iterations=60):
    """Keeps 3 MB in each iteration that `grows` names. Flushes, and so samples, once per iteration."""
    profiler, kept = Profiler(), []
    with record("advised", dir=folder, profiler=profiler) as recording:
        for i in range(iterations):
            profiler.iteration()
            with profiler.profile("loss"):
                spin(0.004)
                if grows(i):
                    kept.append(b"x" * (3 * MB))
            recording.flush()
    return facts_of(recording.folder)


def test_memory_that_an_iteration_keeps_is_reported_with_its_amount(tmp_path):
    facts = speaking(memory_growth, lambda: growing(tmp_path, lambda _: True))
    finding = given(memory_growth(facts), "memory_growth")
    assert finding.gain is None
    amount, unit, *_ = finding.evidence[1].removeprefix("That is ").split()
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
        written.work("loss", 1_000 * MS)
        written.samples.append(sample(second * 1_000 * MS, rss=size, **{name: f(second) for name, f in others.items()}))
    return facts_of(written.end())


def test_the_growth_is_given_per_minute_and_per_iteration_and_until_memory_is_full(tmp_path):
    """10 MB per second, with 8 GB left on the machine: for 819 s, or 13m39s."""
    finding = given(memory_growth(sampled(tmp_path, [1024 * MB + 10 * MB * s for s in range(301)])), "memory_growth")
    assert "600 MB" in finding.cause
    assert finding.evidence[1] == "That is 10.0 MB per iteration."
    assert "free memory (8.00 GB) lasts for 13m39s" in finding.evidence[-1]


def test_the_line_where_the_memory_rises_is_its_place(tmp_path):
    facts = sampled(tmp_path, [1024 * MB + 10 * MB * second for second in range(301)])
    kept = Growth("loss", at("train.py:20", "losses.append(loss)", 0.0), 2_500 * MB, density=3.0)
    noise = Growth("loss", at("train.py:7", "x = 1", 0.0), 2 * MB)
    finding = given(memory_growth(with_lines(facts, {}, [kept, noise])), "memory_growth")
    assert finding.place.where == "train.py:20"
    assert "train.py:20" in finding.cause
    assert not any("train.py:7" in sentence for sentence in finding.evidence)


@pytest.mark.parametrize(
    ("sources", "place"),
    [
        (("optimizer.step()", "history.append(error)"), "train.py:1"),
        (("optimizer.step()", "curve.append(float(loss))"), None),
        (("optimizer.step()", "rows[i] = observation"), None),
    ],
)
def test_memory_that_rises_everywhere_is_blamed_on_a_line_that_stores(tmp_path, sources, place):
    """Samples are too rare to tell which of the lines between two of them took the memory."""
    facts = sampled(tmp_path, [1024 * MB + 10 * MB * second for second in range(301)])
    sizes = (2_000 * MB, 50 * MB)
    grown = [Growth("loss", at(f"train.py:{n}", source, 0.0), sizes[n]) for n, source in enumerate(sources)]
    finding = given(memory_growth(with_lines(facts, {}, grown)), "memory_growth")
    assert (finding.place and finding.place.where) == place
    assert any("train.py:0" in sentence for sentence in finding.evidence)


@pytest.mark.parametrize("at_exit", [0, 1, 2, 3])
@pytest.mark.parametrize("seconds", [35, 60, 300])
def test_samples_taken_at_exit_hide_no_growth(tmp_path, seconds, at_exit):
    """From 0.30 to 1.47 GB, which the process gives back before the last samples are taken."""
    sizes = [int(1024 * MB * (0.30 + 1.17 * second / (seconds - 1))) for second in range(seconds)]
    facts = sampled(tmp_path, sizes + [310 * MB] * at_exit, iterations=seconds)
    assert "to 1.47 GB after warm-up" in given(memory_growth(facts), "memory_growth").evidence[0]


@pytest.mark.parametrize("iterations", [1, 300])
def test_memory_that_is_freed_during_the_training_is_fine(tmp_path, iterations):
    sizes = [300 * MB + 4 * MB * second for second in range(250)] + [310 * MB] * 50
    assert memory_growth(sampled(tmp_path, sizes, iterations=iterations)) is None


def test_growing_child_processes_are_named(tmp_path):
    facts = sampled(tmp_path, [1024 * MB] * 200, children_rss=lambda second: (500 + 5 * second) * MB)
    finding = given(memory_growth(facts), "memory_growth")
    assert "child processes" in finding.cause
    assert "300 MB" in finding.cause


@pytest.mark.parametrize("end", [0.3, 0.5, 0.7, 0.85])
def test_growth_that_has_ended_is_fine_wherever_it_ended(tmp_path, end):
    sizes = [1024 * MB + 10 * MB * min(s, int(300 * end)) for s in range(300)]
    assert memory_growth(sampled(tmp_path, sizes)) is None


@pytest.mark.parametrize("seed", range(5))
def test_memory_that_goes_up_and_down_is_fine(tmp_path, seed):
    chance = random.Random(seed)
    sizes = [1024 * MB + int(chance.uniform(-100, 100) * MB) for _ in range(300)]
    assert memory_growth(sampled(tmp_path, sizes)) is None


@pytest.mark.parametrize(("allocates", "found"), [(0, False), (2, False), (6, True), (10, True)])
def test_an_array_that_fills_up_is_no_leak(tmp_path, allocates, found):
    """10 MB more in use per second, of memory that the process has allocated before, or allocates meanwhile."""
    sizes = [1024 * MB + 10 * MB * second for second in range(120)]
    facts = sampled(tmp_path, sizes, allocated=lambda second: (3_000 + allocates * second) * MB)
    assert (memory_growth(facts) is not None) is found


def test_a_short_growth_is_not_urgent(tmp_path):
    """110 MB in 17 s, with 22 GB left: who knows what it does in an hour?"""
    sizes = [340 * MB + 7 * MB * second for second in range(17)]
    facts = sampled(tmp_path, sizes, machine_available=lambda _: 22_000 * MB)
    assert not given(memory_growth(facts), "memory_growth").urgent
