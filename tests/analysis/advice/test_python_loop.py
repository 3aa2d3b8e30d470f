"""Loops in the user's own Python code."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import amdahl, at, given, with_lines
from sessions import Written, facts_of

from rlprof.analysis.advice import advise
from rlprof.analysis.advice.python_loop import python_loop

MS = 1_000_000
LOOP = ("train.py:39", "force[i] += 0.02 * dx / distance", "World.forces")


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """Per iteration 60 ms of env_step, 30 of loss and 10 of backward."""
    written = Written(tmp_path_factory.mktemp("loop"))
    for _ in range(20):
        with written.fake.profiler.iteration():
            written.work("env_step", 60 * MS)
            with written.fake.profile("update"):
                written.work("loss", 30 * MS)
                written.work("backward", 10 * MS)
    return facts_of(written.end())


def looping(facts, *lines, operation="env_step", around=()):
    """Lines in a loop. The networks are called in a loop of the `around` lines."""
    found = with_lines(facts, {operation: [replace(line, loop=True) for line in lines]})
    return replace(found, code=replace(found.code, inner_loops={"loss": around}, outer_loops={"loss": around}))


def line(where, source, function, share=0.5, below=()):
    return at(where, source, share, function, below)


def test_a_loop_is_named_with_its_function(facts):
    finding = given(
        python_loop(looping(facts, line(*LOOP), line("train.py:40", "x = a[i] - a[j]", LOOP[2], 0.3))), "python_loop"
    )
    assert "train.py:39 (with 1 more line) in World.forces() is a loop in Python: 48.0%" in finding.cause
    assert finding.operations == ("env_step",)
    assert 1.2 < finding.gain.estimate <= amdahl(0.6)


def test_a_line_outside_of_loops_is_work(facts):
    assert python_loop(with_lines(facts, {"env_step": [line(*LOOP)]})) is None


def test_a_short_loop_is_fine(facts):
    assert python_loop(looping(facts, line(*LOOP, share=0.2))) is None


def test_the_training_loop_is_no_mistake(facts):
    assert python_loop(looping(facts, line(*LOOP), around=(line("train.py:9", "loss = f(x)", LOOP[2]),))) is None


def test_a_line_that_spends_its_time_in_libraries_is_no_loop_in_python(facts):
    assert python_loop(looping(facts, line(*LOOP, below=("scipy.linalg:solve",)))) is None


def test_a_network_is_no_loop_in_python(facts):
    assert python_loop(looping(facts, line(*LOOP, share=1.0), operation="loss")) is None


def test_a_pattern_says_more_about_a_line(facts):
    known = looping(facts, line("train.py:7", "self.obs = np.append(self.obs, value)", "World.see"))
    assert python_loop(known) is None
    assert [finding.rule for finding in advise(known)] == ["growing_container"]
