"""The self-test's checks can fail: each is shown a session that is wrong in the way it looks for."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace

import pytest

from rlprof.doctor.selftest.checks import run_checks
from rlprof.doctor.selftest.simulation import simulate


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return simulate(tmp_path_factory.mktemp("selftest"))


def failed(folder, truth) -> set[str]:
    return {check.name for check in run_checks(folder, truth) if check.passed is False}


@pytest.mark.long
def test_nothing_is_wrong_with_a_right_session(simulated):
    assert failed(*simulated) == set()


@pytest.mark.long
def test_other_times_and_calls_than_planted_are_found(simulated):
    folder, truth = simulated
    slower = truth.seconds | {"simulated_data_collection": 1.1 * truth.seconds["simulated_data_collection"]}
    assert failed(folder, replace(truth, seconds=slower)) == {"times are those planted"}
    more = truth.calls + Counter(simulated_model_update=1)
    assert failed(folder, replace(truth, calls=more)) == {"calls are those made"}


@pytest.mark.long
def test_missing_files_are_found(simulated, tmp_path):
    folder, truth = simulated
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "summary.txt").unlink()
    assert failed(copy, truth) == {"a session is written"}


def test_no_session_at_all(simulated):
    assert failed(None, simulated[1]) == {"a session is written"}
