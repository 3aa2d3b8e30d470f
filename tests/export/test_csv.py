"""The tables, read back with the standard library's reader."""

from __future__ import annotations

import csv
import io

import pytest
from timelines import BACKWARD, ITERATION, MS, STARTED, STEP, Kept, training

from rlprof import SpanCost
from rlprof.analysis.report import build_report
from rlprof.render import spreadsheet
from rlprof.render.spreadsheet import TABLES, to_csv, write_csv


def table(session, name):
    file = io.StringIO(newline="")
    with session:
        write_csv(session, file, name)
    return list(csv.DictReader(io.StringIO(file.getvalue(), newline="")))


@pytest.mark.parametrize("name", ["operations", "tree"])
@pytest.mark.parametrize("cost", [SpanCost(), SpanCost(inside_ns=700, outside_ns=300)])
def test_the_ledger_column_sums_to_the_wall_time(tmp_path, name, cost):
    rows = table(training(tmp_path, cost=cost), name)
    assert sum(int(row["ledger_ns"]) for row in rows) == 3 * ITERATION
    assert [row["operation"] for row in rows[-2:]] == ["unattributed", "rlprof"]


def test_an_operation_is_a_row_with_its_figures(tmp_path):
    rows = {row["operation"]: row for row in table(training(tmp_path), "operations")}
    backward = rows["backward"]
    assert backward["category"] == "learning"
    assert float(backward["share_percent"]) == pytest.approx(100 * BACKWARD / ITERATION, abs=1e-4)
    assert {backward[key] for key in ("min_ns", "max_ns")} == {str(BACKWARD)}
    assert float(backward["p95_ns"]) == BACKWARD
    assert (backward["calls"], backward["busy_ns"]) == ("3", str(3 * BACKWARD))
    assert backward["memory_peak_bytes"] == "", "not measured is empty, not zero"
    assert {"環境 größe", "</b>&amp;", '<script>alert("x")</script>'} < set(rows), "names come back as they were"


FORMULAS = ("=cmd|'/c calc'!A0", "+1", "-1+1", "@SUM(1)", "＝1", "x;=1+1", 'a",=1+1,"', "\t=1", "\r=1", "\n=1")  # noqa: RUF001
CONTROLS = (
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b2J", "two\nlines", "a\rb", "tab\there", "\u202egnp.exe", "del\x7f",
)  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_no_name_is_a_formula_and_no_control_character_reaches_the_file(tmp_path, name):
    kept = Kept(tmp_path)
    with kept.iteration():
        for operation in (*FORMULAS, *CONTROLS):
            with kept.profile(operation):
                kept.work("inside", 10)
    file = io.StringIO(newline="")
    with kept.session() as session:
        write_csv(session, file, name)
        shown = to_csv(build_report(session))
    for text in (file.getvalue(), shown):
        assert all(char.isprintable() or char == "\n" for char in text)
        for delimiter in ",;\t":  # as spreadsheets of other countries read it
            for row in csv.reader(io.StringIO(text), delimiter=delimiter):
                assert not any(cell.lstrip()[:1] in tuple("=+@＝") for cell in row), delimiter  # noqa: RUF001
                assert not any(cell.startswith("-") and not cell[1:2].isdigit() for cell in row)


def test_a_masked_formula_still_shows_its_name(tmp_path):
    kept = Kept(tmp_path)
    for operation in ("=cmd()", "-5", "\x1b[31m", "plain"):
        kept.work(operation, 10)
    rows = {row["operation"] for row in table(kept.session(), "operations")}
    assert rows == {"'=cmd()", "'-5", "\\x1b[31m", "plain", "unattributed", "rlprof"}


def test_negative_figures_stay_figures():
    file = io.StringIO(newline="")
    spreadsheet._write(file, [("a", -5, -0.5, None, 1e300)])
    assert file.getvalue() == "a,-5,-0.5,,1e+300\n"


def test_a_row_of_the_tree_names_the_one_it_is_in(tmp_path):
    rows = {row["operation"]: row for row in table(training(tmp_path), "tree")}
    assert (rows["backward"]["parent"], rows["backward"]["depth"]) == ("update", "1")
    assert rows["update"]["parent"] == ""
    assert rows["update"]["subtree_ledger_ns"] == str(3 * (BACKWARD + MS))


def test_an_iteration_is_a_row_whose_operations_sum_to_its_wall_time(tmp_path):
    rows = table(training(tmp_path), "iterations")
    assert [(row["first"], row["last"], row["steps"]) for row in rows] == [(n, n, f"{n}00") for n in "123"]
    for row in rows:
        assert sum(int(value) for key, value in row.items() if key.endswith(" ledger_ns")) == int(row["wall_ns"])
        assert row["env_step ledger_ns"] == str(STEP)
    assert float(rows[1]["start_s"]) == pytest.approx(ITERATION / 1e9)


def test_iterations_are_not_merged_however_many_there_are(tmp_path):
    kept = Kept(tmp_path)
    for _ in range(1_000):
        with kept.iteration():
            kept.work("env_step", 10)
    rows = table(kept.session(), "iterations")
    assert [int(row["last"]) for row in rows] == list(range(1, 1_001))


def test_a_sample_is_a_row_with_its_real_time(tmp_path):
    rows = table(training(tmp_path), "samples")
    assert [row["rss_bytes"] for row in rows] == ["1000000", "2000000", "3000000"]
    assert [row["cpu_percent_of_a_core"] for row in rows] == ["", "91.0", "92.0"]
    assert float(rows[0]["unix_time_s"]) == pytest.approx((STARTED + ITERATION) / 1e9, abs=1e-6)


def test_a_report_and_its_session_give_the_same_table(tmp_path):
    session = training(tmp_path)
    file = io.StringIO(newline="")
    with session:
        write_csv(session, file)
        assert to_csv(build_report(session)) == file.getvalue()


@pytest.mark.parametrize("name", TABLES)
def test_an_empty_session_has_the_head_of_every_table(tmp_path, name):
    rows = table(Kept(tmp_path).session(), name)
    assert [row for row in rows if row.get("operation") not in ("unattributed", "rlprof")] == []
