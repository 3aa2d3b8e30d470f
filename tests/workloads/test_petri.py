"""petri as a training: it learns, rlprof changes nothing, and its components are its time."""

from __future__ import annotations

import pytest
from workload_runs import train_twice

from rlprof.workloads.petri import COMPONENTS

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    words = ("iterations=8", "minibatch=160", "learning_rate=0.001", "--", "turbo=false", "iterations=3")
    return train_twice("petri", tmp_path_factory.mktemp("petri"), *words)


def test_it_learns(trained):
    first, *_, last = trained.alone
    assert first < 0 < last


def test_the_components_of_the_document_are_all_there_and_sum_to_the_time(trained):
    trained.check_components(COMPONENTS)


def test_neither_recording_nor_turbo_changes_a_return(trained):
    trained.check(steps=8 * 640, iterations=8)
