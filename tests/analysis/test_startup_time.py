"""Start-up has an account of its own and does not count for the training's speed."""

from __future__ import annotations

import pytest
from sessions import report_of

from rlprof.report.markdown import to_markdown
from rlprof.report.text import to_text

MS = 1_000_000


@pytest.fixture
def report(written):
    """Six seconds of start-up, then two of training at 500 steps per second."""
    written.work("startup", 6_000 * MS)
    for _ in range(100):
        written.work("env_step", 12 * MS)
        written.work("policy_forward", 8 * MS)
        written.fake.profiler.add_steps(10)
    return report_of(written.end())


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


def test_start_up_is_in_the_headline(report):
    assert "500 steps/s in 2.00 s, after 6.00 s of start-up." in to_text(report)
    assert "**500 steps/s**, 2.00 s in" in to_markdown(report)
    assert "after 6.00 s of start-up" in to_markdown(report)


def test_the_largest_share_is_of_the_time_after_it(report):
    """1.2 s of the two seconds of training, which the line before names."""
    largest = report.facts.breakdown.largest
    assert (largest.ledger_ns, largest.share) == (1_200 * MS, 60.0)
    assert "Largest account: env_step, 60% of 2.00 s (1.20 s)." in to_text(report)
    assert "60% of 2.00 s (1.20 s)" in to_markdown(report)


@pytest.fixture
def closing(written):
    """A second of start-up, two of training at 500 steps per second, and one to close the environments."""
    ledger = written.fake.profiler.ledger
    ledger.begin_startup(written.fake.profile("startup"))
    written.fake.tick(600 * MS)
    with written.fake.profile("env_wait", wait=True):
        written.fake.tick(400 * MS)
    ledger.end_startup()
    for _ in range(100):
        written.work("env_step", 20 * MS)
        written.fake.profiler.add_steps(10)
    written.fake.tick(1_000 * MS)
    return report_of(written.end())


def test_what_comes_after_the_training_does_not_slow_it_down(closing):
    progress = closing.facts.progress
    assert (progress.startup_ns, progress.after_ns, progress.training_ns) == (1_000 * MS, 1_000 * MS, 2_000 * MS)
    assert progress.steps_per_second == pytest.approx(500)
    assert "500 steps/s in 2.00 s, after 1.00 s of start-up, before 1.00 s at the end." in to_text(closing)
    assert "Largest account: env_step, 67% of 3.00 s (2.00 s)." in to_text(closing)
