"""Components against rows whose times are known."""

from __future__ import annotations

import pytest

from rlprof.analysis.breakdown import breakdown
from rlprof.analysis.components import component_of, components
from rlprof.analysis.expectation import isolated_expectation
from rlprof.experiment.expectation import measure_isolated
from rlprof.ledger.profiler import Profiler
from rlprof.render.components import to_text
from rlprof.report.expectation import to_text as expectation_text

NAMED = {"Collection": {"Step": "env_step", "Framework": "rollout tensordict_ops"}, "Training": "update"}


@pytest.fixture
def recorded():
    profiler = Profiler(clock="fake")
    profiler.enable()

    def advance(ns):
        now = profiler.ledger.now() + ns
        profiler.ledger.set_time(now, now)

    with profiler.profile("rollout"):
        advance(10)
        with profiler.profile("env_step"):
            advance(100)
            with profiler.profile("physics"):
                advance(40)
            with profiler.profile("tensordict_ops"):
                advance(5)
    with profiler.profile("update"):
        with profiler.profile("tensordict_ops"):
            advance(7)
        advance(30)
    with profiler.profile("checkpoint"):
        advance(3)
    advance(5)
    profiler.disable()
    return breakdown(profiler.snapshot())


def test_every_nanosecond_is_in_one_component(recorded):
    found = components(recorded, NAMED)
    found.check()
    assert {(line.title, line.depth): line.ledger_ns for line in found.lines} == {
        ("Collection", 0): 10 + 100 + 40 + 5 + 7,
        ("Step", 1): 140,  # with what nobody else has
        ("Framework", 1): 10 + 5 + 7,  # wherever it is called
        ("Training", 0): 30,
        ("Everything else", 0): 3,
        ("Unattributed", 0): 5,
    }
    assert sum(line.share for line in found.lines if line.depth == 0) == pytest.approx(100)


def test_the_text_shows_every_line_with_a_bar(recorded):
    text = to_text(components(recorded, NAMED), 80)
    assert "Component breakdown of 200 ns" in text
    assert max(map(len, text.splitlines())) <= 80
    (step,) = (line for line in text.splitlines() if "- Step" in line)
    assert "140 ns" in step
    assert "70.0%" in step
    assert "█" in step


def test_a_path_of_operations_has_its_component():
    find = component_of(NAMED)
    assert find("rollout/env_step/physics") == "Collection: Step"
    assert find("update/tensordict_ops") == "Collection: Framework"
    assert find("checkpoint") == "Everything else"
    assert find("") == "Unattributed"
    assert component_of({})("rollout/env_step") == "env_step"


def test_parts_one_after_the_other_are_the_expected_speed():
    found = isolated_expectation({"env": [0.004, 0.002, 0.003], "update": [0.001, 0.001, 0.001]}, reached=100)
    assert [part.name for part in found.parts] == ["env", "update"]
    assert found.expected == pytest.approx(250)
    assert found.parts[0].share == pytest.approx(0.75)
    assert found.ratio == pytest.approx(0.4)
    assert found.poor
    text = expectation_text(found, 120)
    assert "could do 250 steps/s. The training did 100, 40.0% of that." in text
    assert "Less than half" in text


def test_parts_are_measured_by_what_they_say_they_did():
    calls = {"a": 0, "b": 0}

    def part(name, steps):
        def do():
            calls[name] += 1
            return steps

        return do

    measured = measure_isolated({"a": part("a", 10), "b": part("b", 20)}, rounds=3, seconds=0.001)
    assert [len(seconds) for seconds in measured.values()] == [3, 3]
    assert min(calls.values()) >= 4
