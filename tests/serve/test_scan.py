"""Runs of a large folder are all read in the end, however little time a scan has."""

from __future__ import annotations

from rlprof.serve.runs import Runs


def test_all_of_3000_runs_are_read_in_the_end_without_any_time(tmp_path):
    for number in range(3_000):
        folder = tmp_path / f"run_20260101-{number:06}"
        folder.mkdir()
        (folder / "session.db").touch()
    runs = Runs(tmp_path)
    found, missing = runs.scan(0.0)
    assert 0 < len(found) < 100
    assert len(found) + missing == 3_000
    before = len(found)
    found, missing = runs.scan(0.0)
    assert len(found) > before, "those that are known already do not use up the time of the others"
    found, missing = runs.scan(600.0)
    assert (len(found), missing) == (3_000, 0)
    assert {run.problem for run in found} == {"It is empty: the run was stopped before its first flush"}
