"""Rules accept any facts: they may come from a JSON file of unknown origin. The worst result must be no finding."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import msgspec
import pytest
from advised import at, with_lines
from anything import FLOATS, INTEGERS, WORDS, of_type
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sessions import Written, facts_of, sample

from rlprof.analysis.advice import advise
from rlprof.analysis.advice.notes import notes
from rlprof.analysis.facts import Facts

QUICK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Facts are so large that to shrink them takes minutes."""


def check(facts: Facts) -> None:
    for finding in advise(facts):
        assert finding.evidence
        assert not any("nan" in text or "inf " in text for text in (finding.cause, *finding.evidence))
        if finding.gain is not None:
            assert 1.0 <= finding.gain.low <= finding.gain.estimate <= finding.gain.high
            assert math.isfinite(finding.gain.high)
    for note in notes(facts):
        assert note.text


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), phases=QUICK)
@given(of_type(Facts))
def test_no_facts_make_a_rule_fail(facts):
    check(facts)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report with a fault for most rules, as JSON."""
    written = Written(tmp_path_factory.mktemp("any"))
    written.fake.profile("agent_calls", category="teacher")
    for i in range(60):
        written.fake.profiler.iteration()
        for operation, ms in (
            ("policy_forward", 0.49), ("agent_calls", 0.25), ("agent_calls", 0.25), ("device_to_host", 0.49),
            ("env_step", 0.1 + 0.018 * i), ("env_reset", 0.5), ("gae", 30.0 if i == 1 else 0.0), ("logging", 0.5),
        ):  # fmt: skip
            written.work(operation, int(ms * 1e6))
        with written.fake.profile("collect", wait=True):
            written.fake.tick(980_000)
        written.fake.profiler.add_steps(1)
        written.samples.append(sample(written.fake.wall, rss=(100 + 5 * i) << 20, cpu=300.0))
    facts = facts_of(written.end())
    facts = replace(facts, resources=replace(facts.resources, torch_threads=4))
    lines = [at("train.py:3", "print(loss.item())", 0.5), at("train.py:4", "copy.deepcopy(net)", 0.5)]
    facts = with_lines(facts, {"env_step": lines, "policy_forward": [at("train.py:9", "time.sleep(1)", 1.0)]})
    assert len(advise(facts)) >= 6
    return msgspec.to_builtins(facts)


def mutate(value: Any, data: st.DataObject) -> Any:
    """The same JSON with one place changed: another number, null, an empty list, or one row removed."""
    if isinstance(value, dict) and value:
        key = data.draw(st.sampled_from(sorted(value, key=str)))
        return {**value, key: mutate(value[key], data)}
    if isinstance(value, (list, tuple)) and value:
        rows = list(value)
        change = data.draw(st.integers(0, 5))
        if change == 0:
            return []
        place = data.draw(st.integers(0, len(rows) - 1))
        return rows[:place] if change == 1 else [*rows[:place], mutate(rows[place], data), *rows[place + 1 :]]
    if isinstance(value, str):
        return data.draw(WORDS)
    return data.draw(st.one_of(INTEGERS, FLOATS, st.none()))


@pytest.mark.long
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), phases=QUICK)
@given(data=st.data())
def test_a_report_that_was_tampered_with_makes_no_rule_fail(report, data):
    changed = report
    for _ in range(data.draw(st.integers(1, 12))):
        candidate = mutate(changed, data)
        try:
            msgspec.convert(candidate, Facts)
        except msgspec.ValidationError:
            continue  # what reads reports refuses it
        changed = candidate
    check(msgspec.convert(changed, Facts))


COLUMN = st.lists(INTEGERS, min_size=30, max_size=60).map(tuple)


@pytest.mark.long
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), phases=QUICK)
@given(data=st.data())
def test_columns_of_any_numbers_and_lengths_make_no_trend_fail(report, data):
    facts = msgspec.convert(report, Facts)
    names = {field.name for field in fields(facts.series)} - {"ledger_ns", "calls"}
    ledger = data.draw(st.dictionaries(WORDS, COLUMN, max_size=3))
    columns = {name: data.draw(COLUMN) for name in sorted(names)}
    series = replace(facts.series, **columns, ledger_ns=ledger, calls=ledger)
    samples = replace(facts.resources.samples, time_ns=data.draw(COLUMN), rss=data.draw(COLUMN))
    check(replace(facts, series=series, resources=replace(facts.resources, samples=samples)))
