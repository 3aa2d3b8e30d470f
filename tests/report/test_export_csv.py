"""The tables, read back with the standard library's reader."""

from __future__ import annotations

import csv
import io

import pytest
from timelines import BACKWARD, ITERATION, MS, NASTY, STARTED, STEP, Kept, training

from rlprof import SpanCost
from rlprof.analysis.report import build_report
from rlprof.report.spreadsheet import TABLES, to_csv, write_csv


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
    assert set(NASTY) < set(rows), "names come back as they were"


def test_a_row_of_the_tree_names_the_one_it_is_in(tmp_path):
    rows = {row["operation"]: row for row in table(training(tmp_path), "tree")}
    assert (rows["backward"]["parent"], rows["backward"]["depth"]) == ("update", "1")
    assert rows["update"]["parent"] == ""
    assert rows["update"]["subtree_ledger_ns"] == str(3 * (BACKWARD + MS))


def test_an_iteration_is_a_row_whose_operations_sum_to_its_wall_time(tmp_path):
    rows = table(training(tmp_path), "iterations")
    assert [(row["first"], row["last"], row["steps"]) for row in rows] == [
        ("1", "1", "100"),
        ("2", "2", "200"),
        ("3", "3", "300"),
    ]
    for row in rows:
        assert sum(int(value) for key, value in row.items() if key.endswith(" ledger_ns")) == int(row["wall_ns"])
        assert row["env_step ledger_ns"] == str(STEP)
    assert float(rows[1]["start_s"]) == pytest.approx(ITERATION / 1e9)


def test_iterations_are_not_put_together_however_many_there_are(tmp_path):
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
def test_a_session_with_nothing_in_it_has_the_head_of_every_table(tmp_path, name):
    rows = table(Kept(tmp_path).session(), name)
    assert [row for row in rows if row.get("operation") not in ("unattributed", "rlprof")] == []
