"""The gate of the command line and of the pytest fixture: it fails only if the whole interval agrees."""

from __future__ import annotations

import random

import pytest
from sessions import Written

from rlprof.analysis.comparison import MeasuredPair, compare
from rlprof.analysis.work import Measured
from rlprof.compare.gate import gate
from rlprof.compare.separate_sessions import compare_separate
from rlprof.errors import RlprofError

pytest_plugins = ["rlprof.pytest_plugin"]


def side(mean_ns, number, updates=1.0):
    chance = random.Random(number)
    times = [mean_ns * chance.uniform(0.999, 1.001) for _ in range(number)]
    return [Measured(ns, 0.0, 8.0, {"env_step": ns}, 0.0, updates, 10) for ns in times]


def compared(a, b):
    return compare_separate("A", "B", a, b, alpha=0.03)


@pytest.mark.parametrize(("b_ns", "passed"), [(1.0e6, True), (1.03e6, True), (1.2e6, False), (0.8e6, True)])
def test_only_a_certain_slowdown_beyond_the_limit_fails(b_ns, passed):
    decision = gate(compared(side(1e6, 5), side(b_ns, 6)), limit=0.05)
    assert decision.passed is passed
    assert decision.note == ("" if passed else "B is slower than A by more than 5%.")


def test_without_an_interval_there_is_no_answer():
    with pytest.raises(RlprofError, match=r"a side with a single session .*\. Record at least 4 sessions per side\."):
        gate(compared(side(1e6, 1), side(2e6, 1)), limit=0.05)
    for pairs, why in ((1, "a single pair gives no error rate"), (2, "2 pairs are too few for an interval")):
        found = compare("A", "B", [MeasuredPair(*pair) for pair in zip(side(1e6, pairs), side(2e6, pairs))])
        with pytest.raises(RlprofError, match=rf"--fail-if-slower has no answer: {why}\. Run at least 6 pairs"):
            gate(found, limit=0.05)


def test_few_sessions_fail_by_their_interval_and_the_note_says_that_they_are_few():
    decision = gate(compared(side(1e6, 3), side(2e6, 3)), limit=0.05)
    assert not decision.passed
    assert decision.note.endswith(
        "Only 3 sessions of A and 3 of B: if A and B were equally fast, one of them would still win every session in"
        " 10.0% of cases."
    )


def test_different_work_has_no_answer():
    with pytest.raises(RlprofError, match="A and B do different work"):
        gate(compared(side(1e6, 5), side(2e6, 6, updates=2.0)), limit=0.05)


def sessions(folder, step_ns):
    for number in range(3):
        written = Written(folder / f"run_20260101-12000{number}")
        for _ in range(6):
            with written.fake.profiler.iteration():
                written.work("env_step", step_ns + 1_000 * number)
                written.fake.profiler.add_steps(8)
        written.end()
    return str(folder)


def test_the_fixture_takes_sessions_and_fails_a_test_with_the_same_gate(rlprof_compare, tmp_path):
    fast, slow = sessions(tmp_path / "fast", 1_000_000), sessions(tmp_path / "slow", 1_500_000)
    assert rlprof_compare(slow, fast, fail_if_slower=0.05).verdict == "faster"
    with pytest.raises(pytest.fail.Exception, match="B is slower than A by more than 5%"):
        rlprof_compare(fast, slow, fail_if_slower=0.05)
