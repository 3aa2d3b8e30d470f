"""Loops in the user's own Python code."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import amdahl, at, given, with_lines
from sessions import Written, facts_of

from rlprof.analysis.advice import advise
from rlprof.analysis.advice.python_loop import python_loop

MS = 1_000_000


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


def loop(share=0.8, function="World.forces", below=()):
    """Two lines, the first with most of the time."""
    return (
        at("train.py:39", "force[i] += 0.02 * dx / distance", 0.6 * share, function, below),
        at("train.py:40", "dx = x[i] - x[j]", 0.4 * share, function, below),
    )


def test_a_loop_is_named_with_its_function(facts):
    finding = given(python_loop(looping(facts, *loop())), "python_loop")
    assert "train.py:39 (with 1 more line) in World.forces() is a loop in Python: 48.0%" in finding.cause
    assert finding.operations == ("env_step",)
    assert 1.2 < finding.gain.estimate <= amdahl(0.48)


def test_lines_outside_of_loops_are_work(facts):
    assert python_loop(with_lines(facts, {"env_step": loop()})) is None


def test_a_short_loop_is_fine(facts):
    assert python_loop(looping(facts, *loop(share=0.2))) is None


def test_the_training_loop_is_no_mistake(facts):
    around = at("train.py:9", "loss = f(x)", 0.5, "World.forces")
    assert python_loop(looping(facts, *loop(), around=(around,))) is None


def test_lines_that_spend_their_time_in_libraries_are_no_loop_in_python(facts):
    assert python_loop(looping(facts, *loop(below=("scipy.linalg:solve",)))) is None


def test_a_single_line_calls_something_slow(facts):
    """Unless it is a loop by itself."""
    slow = at("train.py:39", "world = solve(world)", 0.8, "World.forces")
    alone = at("train.py:39", "total = sum([hypot(a, b) for a, b in pairs])", 0.8, "World.forces")
    assert python_loop(looping(facts, slow)) is None
    assert python_loop(looping(facts, alone)) is not None


def test_a_simulation_goes_step_by_step(facts):
    sources = ("self.speed += (force - self.speed) * dt", "self.position = self.position + self.speed * dt")
    steps = [replace(line, source=source) for line, source in zip(loop(), sources)]
    assert python_loop(looping(facts, *steps)) is None
    kept = [
        replace(line, source=source.replace("self.position = self.position", "place[i] = here"))
        for line, source in zip(loop(), sources[::-1])
    ]
    assert python_loop(looping(facts, *kept)) is not None


def test_a_network_is_no_loop_in_python(facts):
    assert python_loop(looping(facts, *loop(share=1.0), operation="loss")) is None


def test_a_pattern_says_more_about_a_line(facts):
    grown = at("train.py:7", "self.obs = np.append(self.obs, value)", 0.5, "World.see")
    known = looping(facts, grown, at("train.py:8", "value += 1", 0.2, "World.see"))
    assert python_loop(known) is None
    assert [finding.rule for finding in advise(known)] == ["growing_container"]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("out[i, j] = torch.sign(v) * torch.log1p(abs(v))", True),
        ("scaled = [p ** 0.6 for p in weights]", True),
        ("filtered = convolve(signal, kernel)", False),
        ("if out[i] == best:", False),
    ],
)
def test_a_single_line_is_a_loop_if_it_handles_one_element(facts, source, found):
    line = at("train.py:54", source, 0.8, "Squash.apply")
    assert (python_loop(looping(facts, line)) is not None) is found
