"""Imports while the training runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import at, given
from sessions import Written, facts_of

from rlprof.analysis.advice.import_in_loop import import_in_loop

MS = 1_000_000


@pytest.fixture
def facts(tmp_path):
    written = Written(tmp_path)
    for _ in range(30):
        with written.fake.profiler.iteration():
            written.work("env_step", 100 * MS)
    return facts_of(written.end())


def importing(facts, share):
    """The same facts with an import that takes this share of the training time."""
    line = at("train.py:7", "import_module('maps').load()", share)
    ns = share * facts.breakdown.training_ns
    return replace(facts, code=replace(facts.code, imports=(replace(line, ns=ns),)))


def test_an_import_in_the_loop_is_named_by_its_line(facts):
    finding = given(import_in_loop(importing(facts, 0.3)), "import_in_loop")
    assert finding.place.where == "train.py:7"
    assert "30.0%" in finding.cause
    assert finding.gain.low < 1 / 0.7 < finding.gain.high


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_imports_that_take_no_time_are_fine(facts, share):
    assert import_in_loop(importing(facts, share)) is None


def test_no_imports_are_fine(facts):
    assert import_in_loop(facts) is None
