"""What a program does before its training is in the account, and says nothing of the training's speed."""

from __future__ import annotations

import pytest
from sessions import Written, report_of

from rlprof.report.markdown import to_markdown
from rlprof.report.text import to_text

MS = 1_000_000


@pytest.fixture
def report(tmp_path):
    """Six seconds of start-up, then two of training at 500 steps a second."""
    written = Written(tmp_path)
    written.work("startup", 6_000 * MS)
    for _ in range(100):
        written.work("env_step", 12 * MS)
        written.work("policy_forward", 8 * MS)
        written.fake.profiler.add_steps(10)
    return report_of(written.end())


def test_steps_are_counted_by_the_time_since_it_began(report):
    progress = report.facts.progress
    assert progress.wall_ns == 8_000 * MS
    assert progress.startup_ns == 6_000 * MS
    assert progress.steps_per_second == pytest.approx(500)


def test_the_account_still_has_it_and_sums_to_the_wall_time(report):
    shares = {row.operation: row.share for row in report.facts.breakdown.rows}
    assert shares["startup"] == pytest.approx(75)
    assert sum(row.ledger_ns for row in report.facts.breakdown.rows) == 8_000 * MS


def test_nothing_is_recommended_for_it(report):
    findings = report.findings
    assert report.facts.breakdown.largest.name == "env_step"
    assert "startup" not in {item.operation for item in (*findings.bottlenecks, *findings.recommendations)}
    expected = findings.expectation
    assert sum(part.typical_ns for part in expected.parts) + sum(loss.ns for loss in expected.losses) == 2_000 * MS
    assert expected.steps_per_second == pytest.approx(500)


def test_it_is_said(report):
    assert "500 steps/s in 2.00 s, after 6.00 s of start-up." in to_text(report)
    assert "**500 steps/s**, 2.00 s in" in to_markdown(report)
    assert "after 6.00 s of start-up" in to_markdown(report)
