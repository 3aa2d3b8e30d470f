"""The text report: golden files made with a fake clock, and what must be true of any of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from sessions import Written, report_of, sample

from rlprof import SpanCost
from rlprof.report.analyzer import to_text as analysis_text
from rlprof.report.json import to_json
from rlprof.report.markdown import to_markdown
from rlprof.report.text import to_text

GOLDEN = Path(__file__).parent / "golden"
MS = 1_000_000


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def planted(folder: Path) -> Path:
    """Thirty iterations of a PPO whose every time is planted."""
    written = Written(folder, cost=SpanCost(60.0, 40.0, 30.0))
    profiler, tick = written.fake.profiler, written.fake.tick
    for i in range(30):
        with profiler.iteration():
            for _ in range(4):
                written.work("policy_forward", 2 * MS)
                written.work("env_step", (5 + i % 3) * MS, cpu=4 * MS)
                profiler.add_steps(8)
            written.work("advantage", 1 * MS)
            with written.fake.profile("update"):
                for _ in range(2):
                    written.work("backward", 6 * MS)
                    written.work("optimizer_step", 1 * MS)
                tick(500_000)
            profiler.add_episodes(i % 2)
            tick(250_000)
        written.samples = [sample((i + 1) * 50 * MS, cpu=80.0, rss=(100 + i) << 20)]
        written.flush()
    return written.end()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return report_of(planted(tmp_path_factory.mktemp("planted")))


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("report.txt", to_text),
        ("report_80.txt", lambda report: to_text(report, 80)),
        ("analysis.txt", analysis_text),
        ("report.md", to_markdown),
        ("report.json", to_json),
    ],
)
def test_the_report_is_the_golden_one(name, render, report):
    """After an intended change: RLPROF_GOLDEN=write pytest tests/report, then review the difference."""
    text = render(report)
    if os.environ.get("RLPROF_GOLDEN") == "write":
        (GOLDEN / name).write_text(text)
    assert text == (GOLDEN / name).read_text()


def test_the_headline_comes_first(report):
    lines = to_text(report).splitlines()
    assert lines[1].endswith("steps/s in 1.43 s, 30 iterations.")
    assert lines[2].startswith("Largest account: env_step, 5")
    assert lines[3].startswith("Try first: ")


def test_planted_figures_are_in_their_places(report):
    text = to_text(report)
    steps_per_second = 30 * 4 * 8 / (report.facts.breakdown.wall_ns / 1e9)
    assert f"{steps_per_second:,.0f} steps/s" in text
    row = next(line for line in text.splitlines() if line.startswith("backward") and "ms" in line)
    assert row.split()[1] == "60"  # calls
    assert "15 episodes" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_console(width, report):
    assert max(map(len, to_text(report, width).splitlines())) <= width


def test_an_empty_session_says_so(tmp_path):
    written = Written(tmp_path)
    written.fake.profiler.disable()
    assert "Nothing was recorded." in to_text(report_of(written.end()))


def test_a_killed_run_says_so(tmp_path):
    written = Written(tmp_path)
    written.work("env_step", MS)
    written.flush()
    report = report_of(written.path)
    written.writer.close()
    assert "still running or killed" in to_text(report).splitlines()[0]


def test_names_with_markup_are_shown_as_they_are(tmp_path):
    written = Written(tmp_path)
    written.work("[bold]env[/bold]", MS)
    written.work("a|b *c* <i>", MS)
    report = report_of(written.end())
    assert "[bold]env[/bold]" in to_text(report)
    assert r"a\|b \*c\* \<i\>" in to_markdown(report)


def test_the_headline_reports_poor_speed(tmp_path):
    written = Written(tmp_path)
    for _ in range(30):
        with written.fake.profiler.iteration():
            written.work("env_step", 1 * MS)
            written.fake.profiler.add_steps(1)
            written.fake.tick(4 * MS)
    report = report_of(written.end())
    assert report.findings.expectation.ratio == pytest.approx(0.2)
    text = to_text(report)
    assert "Below half of what its parts could do: 20%. Most is lost to unattributed (120 ms)." in text
    assert "1,000 steps/s" in text  # what the environment does alone
