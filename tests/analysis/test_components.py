"""Components against rows whose times are known."""

from __future__ import annotations

import pytest

from rlprof.analysis.components import component_of, components
from rlprof.render.components import to_text

NAMED = {"Collection": {"Step": "env_step", "Framework": "rollout tensordict_ops"}, "Training": "update"}


@pytest.fixture
def recorded(planted):
    with planted.profile("rollout"):
        planted.tick(10)
        with planted.profile("env_step"):
            planted.tick(100)
            planted.work("physics", 40)
            planted.work("tensordict_ops", 5)
    with planted.profile("update"):
        planted.work("tensordict_ops", 7)
        planted.tick(30)
    planted.work("checkpoint", 3)
    planted.tick(5)
    return planted.breakdown()


def test_every_nanosecond_is_in_one_component(recorded):
    found = components(recorded, NAMED)
    found.check()
    assert {(line.title, line.depth): line.ledger_ns for line in found.lines} == {
        ("Collection", 0): 10 + 100 + 40 + 5 + 7,
        ("Step", 1): 140,  # with what belongs to no other component
        ("Framework", 1): 10 + 5 + 7,  # wherever it is called
        ("Training", 0): 30,
        ("Everything else", 0): 3,
        ("Unattributed", 0): 5,
    }
    assert sum(line.share for line in found.lines if line.depth == 0) == pytest.approx(100)
    assert found.outside == ()


def test_start_up_has_a_line_of_its_own_and_no_share(planted):
    planted.work("startup", 1_000)
    planted.work("env_step", 60)
    planted.work("update", 40)
    planted.work("trace_export", 500)
    found = components(planted.breakdown(), NAMED)
    found.check()
    assert found.training_ns == 100
    assert {line.title: line.share for line in found.lines if line.ledger_ns} == {
        "Collection": 60.0,
        "Step": 60.0,
        "Training": 40.0,
    }
    assert [(part.name, part.ns) for part in found.outside] == [("Start-up", 1_000), ("Trace export", 500)]
    text = to_text(found, 80)
    (line,) = (line for line in text.splitlines() if line.startswith("Start-up"))
    assert "1.00 us" in line
    assert "%" not in line


def test_the_text_shows_every_line_with_a_bar(recorded):
    text = to_text(components(recorded, NAMED), 80)
    assert "Component breakdown of 200 ns of training" in text
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
