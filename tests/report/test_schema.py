"""The JSON report has a published schema, and keeps to it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator
from sessions import Written, report_of, sample

from rlprof.report.json import schema, to_json

PUBLISHED = Path(__file__).parents[2] / "docs" / "report.schema.json"


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> dict:
    written = Written(tmp_path_factory.mktemp("run"))
    for _ in range(5):
        with written.fake.profiler.iteration():
            written.work("env_step", 1_000_000)
            written.work("update", 700_000, track_memory=True)
            written.fake.profiler.add_steps(8)
    written.samples = [sample(1), sample(2)]
    return json.loads(to_json(report_of(written.end())))


def test_a_report_keeps_to_the_published_schema(report):
    published = json.loads(PUBLISHED.read_text())
    Draft202012Validator.check_schema(published)
    assert list(Draft202012Validator(published).iter_errors(report)) == []


@pytest.mark.parametrize("wrong", ["many", None, 1.5])
def test_the_schema_refuses_what_is_no_report(report, wrong):
    broken = json.loads(json.dumps(report))
    broken["facts"]["operations"][0]["calls"] = wrong
    assert list(Draft202012Validator(json.loads(PUBLISHED.read_text())).iter_errors(broken))


def test_the_published_schema_is_that_of_the_types():
    """After an intended change, write it with tools/schema."""
    assert json.loads(PUBLISHED.read_text()) == json.loads(msgspec.json.encode(schema()))
