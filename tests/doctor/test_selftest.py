"""The self-test's checks can fail: each is shown a session that is wrong in the way it looks for."""

from __future__ import annotations

import pytest

from rlprof.doctor.selftest.checks import run_checks
from rlprof.doctor.selftest.simulation import Truth, simulate


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return simulate(tmp_path_factory.mktemp("selftest"))


def failed(folder, truth) -> set[str]:
    return {check.name for check in run_checks(folder, truth) if check.passed is False}


def changed(truth: Truth, **other) -> Truth:
    return Truth(seconds=other.get("seconds", truth.seconds.copy()), calls=other.get("calls", truth.calls.copy()))


@pytest.mark.long
def test_nothing_is_wrong_with_a_right_session(simulated):
    assert failed(*simulated) == set()


@pytest.mark.long
def test_other_times_than_planted_are_found(simulated):
    folder, truth = simulated
    wrong = changed(truth)
    wrong.seconds["simulated_data_collection"] *= 1.1
    assert failed(folder, wrong) == {"times are those planted"}


@pytest.mark.long
def test_other_calls_than_made_are_found(simulated):
    folder, truth = simulated
    wrong = changed(truth)
    wrong.calls["simulated_model_update"] += 1
    assert failed(folder, wrong) == {"calls are those made"}


@pytest.mark.long
def test_missing_files_are_found(simulated, tmp_path):
    import shutil

    folder, truth = simulated
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "summary.txt").unlink()
    assert failed(copy, truth) == {"a session is written"}


def test_no_session_at_all(simulated):
    assert failed(None, simulated[1]) == {"a session is written"}
