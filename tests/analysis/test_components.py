"""Components against rows whose times are known."""

from __future__ import annotations

import pytest

from rlprof.analysis.breakdown import breakdown
from rlprof.analysis.components import component_of, components
from rlprof.ledger.profiler import Profiler
from rlprof.render.components import to_text

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
