"""Operations that take longer than they did, against planted times."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from sessions import Written

from rlprof.analysis.changes import Change, changes
from rlprof.session.reader import Session

SECOND = 10**9


def found_in(folder: Path, iterations: int, env_step: Callable[[int], float], update: Callable[[int], float]):
    """The changes in a training with these times in seconds, by the number of the iteration."""
    written = Written(folder)
    for number in range(iterations):
        with written.fake.profiler.iteration():
            for _ in range(4):
                written.work("env_step", round(env_step(number) * SECOND / 4))
            written.work("update", round(update(number) * SECOND))
    with Session(written.end()) as session:
        operation = {node.id: node.operation for node in session.snapshot().nodes if node.operation}
        return changes(session, session.iterations(), operation)


def test_an_operation_that_takes_longer_is_found_with_its_ratio(tmp_path):
    (found,) = found_in(tmp_path, 1_500, lambda number: 0.5 if number < 1_000 else 0.7, lambda _: 0.5)
    assert found == Change("env_step", pytest.approx(1.4), 0.125e9, 0.175e9, pytest.approx(600, abs=2),
                           pytest.approx(58.3, abs=0.1))  # fmt: skip


def test_an_operation_that_became_faster_is_found(tmp_path):
    (found,) = found_in(tmp_path, 400, lambda _: 0.5, lambda number: 1.0 if number < 200 else 0.5)
    assert (found.operation, found.ratio) == ("update", 0.5)


def test_noise_is_no_change(tmp_path):
    for seed in range(5):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        assert (
            found_in(folder, 300, lambda _, c=chance: c.uniform(0.3, 0.7), lambda _, c=chance: c.gauss(0.5, 0.1)) == []
        )


def test_a_single_slow_iteration_is_no_change(tmp_path):
    assert found_in(tmp_path, 300, lambda number: 30 if number == 290 else 0.5, lambda _: 0.5) == []


def test_small_operations_and_small_changes_are_left_out(tmp_path):
    assert found_in(tmp_path / "small", 300, lambda number: 0.001 * (1 + number), lambda _: 50.0) == []
    assert found_in(tmp_path / "little", 300, lambda number: 0.5 + 0.0002 * number, lambda _: 0.5) == []


def test_a_short_training_has_no_changes(tmp_path):
    assert found_in(tmp_path / "seconds", 50, lambda number: 0.1 * (1 + number // 25), lambda _: 0.1) == []
    assert found_in(tmp_path / "few", 8, lambda number: 10.0 * (1 + number // 4), lambda _: 10.0) == []


def test_the_first_iteration_is_no_reference(tmp_path):
    assert found_in(tmp_path, 12, lambda number: 100 if number == 0 else 10, lambda _: 10.0) == []
