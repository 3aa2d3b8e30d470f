"""The text report: golden files made with a fake clock, and what must be true of any of them."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sessions import Written, report_of, sample

from rlprof import SpanCost
from rlprof.report.analyzer import to_text as analysis_text
from rlprof.report.html.document import to_html
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


WALL_NS = sum(4 * 2 * MS + 4 * (5 + i % 3) * MS + 1 * MS + 2 * 7 * MS + 750_000 for i in range(30))
"""The sum of every planted time."""


def test_the_rows_of_the_golden_json_sum_to_the_planted_time():
    facts = json.loads((GOLDEN / "report.json").read_text())["facts"]
    whole = facts["breakdown"]
    assert whole["wall_ns"] == WALL_NS
    assert sum(row["ledger_ns"] for row in whole["rows"]) == WALL_NS
    assert sum(row["subtree_ledger_ns"] for row in whole["rows"] if row["depth"] == 0) == WALL_NS
    assert sum(category["ledger_ns"] for category in whole["categories"]) == WALL_NS
    outside = sum(row["ledger_ns"] for row in whole["rows"][-2:])
    assert sum(operation["ledger_ns"] for operation in facts["operations"]) + outside == WALL_NS
    series = facts["series"]
    assert sum(series["wall_ns"]) == WALL_NS
    assert [sum(point) for point in zip(*series["ledger_ns"].values())] == series["wall_ns"]
    assert sum(series["steps"]) == 30 * 4 * 8


MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
ROW = r"^(\S+).*? (\d+\.\d)%\s+(\d[\d.]*) (us|ms|s)\b"


@pytest.mark.parametrize("name", ["report.txt", "report_80.txt", "report.md"])
def test_the_printed_tables_sum_to_the_planted_time(name):
    """Rows of the tree that are not indented, and categories: 100.0 %, and the wall time within rounding."""
    text = (GOLDEN / name).read_text().split("Where the training time went")[1].split("\nOperations\n")[0]
    tree, categories = (text.replace("| ", "").split("category")[part] for part in (0, 1))
    for table in (tree, categories):
        rows = re.findall(ROW, table.replace("|", ""), re.MULTILINE)
        assert len(rows) == 6
        assert sum(float(share) for _, share, _, _ in rows) == pytest.approx(100.0)
        milliseconds = sum(float(figure) * MILLISECONDS[unit] for _, _, figure, unit in rows)
        assert milliseconds == pytest.approx(WALL_NS / MS, rel=0.001)


def test_the_parts_of_a_printed_score_sum_to_it():
    rows = re.findall(r"^\w+((?: +\d+\.\d){5}) +\d+\.\d%", (GOLDEN / "analysis.txt").read_text(), re.MULTILINE)
    assert len(rows) == 5
    for figures in rows:
        score, *parts = map(float, figures.split())
        assert sum(parts) == pytest.approx(score, abs=0.2)


def test_a_finding_is_printed_once(report):
    """The first finding, its evidence and its change are in a report once; thresholds are only in the analysis."""
    (finding,) = report.findings.findings
    page = re.sub(r"<[^>]*>", "", to_html(report).split("<main>")[1].split("</main>")[0])
    for printed in (to_text(report), to_markdown(report), html.unescape(page)):
        text = " ".join(printed.replace("`", "").split())
        for part in (finding.cause, finding.evidence[1], finding.change.rstrip(".")):
            assert text.count(part.replace("`", "")) == 1, part
        assert "CRITICAL" not in text
    analysis = " ".join(analysis_text(report).split())
    assert analysis.count("CRITICAL: env_step") == 1
    assert finding.change.rstrip(".") not in analysis


def test_the_speed_and_then_the_findings_come_first(report):
    text = to_text(report)
    assert text.splitlines()[1].startswith("670 steps/s over 1.43 s of training (30 iterations)")
    headings = [text.index(part) for part in ("What to change", "Where the training time went", "\nOperations\n")]
    assert headings == sorted(headings)


def test_planted_figures_are_in_their_places(report):
    text = to_text(report)
    steps_per_second = 30 * 4 * 8 / (report.facts.breakdown.wall_ns / 1e9)
    assert f"{steps_per_second:,.0f} steps/s" in text
    row = next(line for line in text.splitlines() if line.startswith("backward") and "ms" in line)
    assert row.split()[1] == "60"  # calls
    assert "15 episodes" in text


NEVER_WRAPPED = ("      rlprof compare ", "command: ", "folder: ")
"""Beginnings of lines to paste."""


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_console(width, report):
    lines = [line for line in to_text(report, width).splitlines() if not line.startswith(NEVER_WRAPPED)]
    assert max(map(len, lines)) <= width


def test_a_command_is_one_line_to_paste_and_names_the_copy(report):
    (finding,) = report.findings.findings
    script = "examples/a folder/train long name.py"
    copy = "examples/a folder/train long name_changed.py"
    check = shlex.join(["rlprof", "compare", shlex.join(["run", script]), shlex.join(["run", copy])])
    found = replace(report.findings, findings=(replace(finding, check=check),))
    lines = to_text(replace(report, findings=found), 40).splitlines()
    (line,) = [line for line in lines if line.strip().startswith("rlprof compare")]
    assert [shlex.split(word) for word in shlex.split(line)[2:]] == [["run", script], ["run", copy]]
    assert "Check: make the change in a copy," in " ".join(lines)


def test_the_folder_of_the_run_is_named(report):
    assert "folder:   /home/user/project" in to_text(report).splitlines()


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_table_loses_columns_and_not_names(written, width):
    for name in ("advantage_estimate", "policy_forward_2"):
        for _ in range(30):
            with written.fake.profiler.iteration():
                written.work(name, MS, track_memory=True)
                written.fake.profiler.add_steps(1)
    report = report_of(written.end())
    for text in (analysis_text(report, width), to_text(report, width).partition("\nOperations\n")[2]):
        table = text.partition("operation  ")[2].split("Recommendations")[0]
        assert "policy_forward_2" in table
    assert "share" in analysis_text(report, width)


def test_a_program_without_training_gets_one_sentence(written):
    written.fake.tick(300 * MS)
    report = report_of(written.end())
    page = re.sub(r"<style>.*?</style>|<[^>]*>", " ", to_html(report), flags=re.DOTALL)
    for text in (to_text(report), analysis_text(report), page):
        assert "No training was seen" in text
        for part in ("Operations", "Parallelism", "What to change", "min-calls"):
            assert part not in text


def test_an_empty_session_says_so(written):
    written.fake.profiler.disable()
    assert "Nothing was recorded." in to_text(report_of(written.end()))


def test_a_killed_run_says_so(written):
    written.work("env_step", MS)
    written.flush()
    report = report_of(written.path)
    written.writer.close()
    assert "still running" in to_text(report).splitlines()[0]


def test_code_in_a_finding_is_code_in_markdown(report):
    (finding,) = report.findings.findings
    code = re.findall(r"`[^`]+`", finding.change)
    assert code
    assert all(part in to_markdown(report) for part in code)


def test_names_with_markup_are_shown_as_they_are(written):
    written.work("[bold]env[/bold]", MS)
    written.work("a|b *c* <i>", MS)
    report = report_of(written.end())
    assert "[bold]env[/bold]" in to_text(report)
    assert r"a\|b \*c\* \<i\>" in to_markdown(report)


def test_what_the_parts_would_allow_is_in_the_whole_report(written):
    for _ in range(30):
        with written.fake.profiler.iteration():
            written.work("env_step", 1 * MS)
            written.fake.profiler.add_steps(1)
            written.fake.tick(4 * MS)
    report = report_of(written.end())
    assert report.findings.expectation.ratio == pytest.approx(0.2)
    assert "1,000 steps/s" in to_text(report)  # what the environment does alone


def test_cpu_time_that_does_not_fit_the_training_is_not_shown(report):
    unfit = replace(report.facts.parallelism, capacity=None)
    shown = replace(report, facts=replace(report.facts, parallelism=unfit))
    for text in (to_text(shown), to_html(shown)):
        assert "exceeds what the cores could provide" in text
        assert "outside spans" not in text
