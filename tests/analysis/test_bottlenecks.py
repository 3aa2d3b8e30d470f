"""Scores and recommendations, against planted operations."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from sessions import report_of

from rlprof.analysis.bottlenecks import WEIGHTS, bottlenecks, recommendations
from rlprof.analysis.report import find
from rlprof.report import analyzer
from rlprof.report.markdown import to_markdown
from rlprof.report.text import to_text

MS = 1_000_000
MB = 1 << 20


@pytest.fixture
def planted(written):
    with written.fake.profile("training_total"):
        for _ in range(10):
            written.work("env_step", 40 * MS)
            written.work("policy_forward", 5 * MS)
        written.work("checkpoint", 250 * MS)
        written.work("evaluation", 101 * MS)
        written.work("loss", 99 * MS)
    return report_of(written.end())


def scores(report):
    return {bottleneck.operation: bottleneck for bottleneck in report.findings.bottlenecks}


def test_each_part_is_normalised_and_the_score_is_their_weighted_sum(planted):
    assert sum(WEIGHTS.values()) == 100
    for item in planted.findings.bottlenecks:
        parts = {name: getattr(item, name) for name in WEIGHTS}
        assert all(0 <= part <= 1 for part in parts.values())
        assert item.score == pytest.approx(sum(WEIGHTS[name] * part for name, part in parts.items()))
        assert 0 <= item.score <= 100
    env = scores(planted)["env_step"]
    assert env.time == pytest.approx(400 / 900)
    assert env.per_call == pytest.approx(0.4)
    assert scores(planted)["checkpoint"].per_call == 1.0
    assert env.score == pytest.approx(40 * 400 / 900 + 30 * 0.4)


def test_the_highest_score_comes_first(planted):
    found = [item.score for item in planted.findings.bottlenecks]
    assert found == sorted(found, reverse=True)


def test_every_operation_that_qualifies_is_recommended_and_no_other(planted):
    found = {(item.severity, item.operation) for item in planted.findings.recommendations}
    assert found == {("CRITICAL", "env_step"), ("SLOW", "checkpoint"), ("SLOW", "evaluation")}


def test_memory_counts_from_100_mb_on(planted):
    operation = planted.facts.operation("loss")
    for rise, device, severities in (
        (100 * MB, 100 * MB, []),
        (101 * MB, None, ["MEMORY"]),
        (None, 101 * MB, ["GPU MEMORY"]),
        (500 * MB, 500 * MB, ["MEMORY", "GPU MEMORY"]),
    ):
        changed = replace(operation, memory_rise=rise, device_rise=device)
        assert [item.severity for item in recommendations([changed])] == severities
        (scored,) = bottlenecks([changed])
        assert scored.memory == (min(1.0, rise / (100 * MB)) if rise else 0.0)


def test_operations_with_few_calls_can_be_left_out(planted):
    few = find(planted.facts, min_calls=2)
    assert {item.operation for item in few.bottlenecks} == {"env_step", "policy_forward"}
    assert {item.operation for item in few.recommendations} == {"env_step"}


@pytest.fixture
def phased(written):
    """Phases with much time of their own, and a container that the catalogue does not know."""
    with written.fake.profile("training_total"):
        written.fake.tick(110 * MS)
        with written.fake.profile("rollout"):
            written.fake.tick(400 * MS)
            written.work("env_step", 30 * MS)
        with written.fake.profile("update"):
            written.fake.tick(200 * MS)
            with written.fake.profile("my_epoch"):
                written.fake.tick(10 * MS)
                written.work("loss", 150 * MS)
    return report_of(written.end())


def test_a_phase_or_an_operation_that_only_contains_others_is_no_finding_however_long_it_takes(phased):
    facts = phased.facts
    assert facts.operation("my_epoch").mean_ns > 100 * MS
    assert facts.operation("rollout").share == pytest.approx(100 * 400 / 900), "its time is in the report all the same"
    assert {item.operation for item in phased.findings.bottlenecks} == {"env_step", "my_epoch", "loss"}
    assert {item.operation for item in phased.findings.recommendations} == {"loss"}
    for render in (to_text, to_markdown, analyzer.to_text):
        for line in render(phased).splitlines():
            assert not re.match(r"\W*(CRITICAL|SLOW|MEMORY)\W+(rollout|update|training_total|my_epoch)\b", line)


def test_a_phase_with_nothing_inside_is_an_operation_like_any_other(written):
    """A user who times `update` as one piece wants to know that it is slow."""
    written.work("env_step", 100 * MS)
    written.work("update", 200 * MS)
    found = report_of(written.end()).findings
    assert found.bottlenecks[0].operation == "update"
    assert ("SLOW", "update") in {(item.severity, item.operation) for item in found.recommendations}
