"""Speed, iterations and episodes, against planted times."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from planted import Planted

from rlprof.analysis.progress import Progress, progress
from rlprof.analysis.training import training_part
from rlprof.ledger.catalogue import EVALUATION, PREFILL, STARTUP
from rlprof.session.reader import IterationRow

S = 1_000_000_000


def iteration(number: int, wall: int, steps: int = 0) -> IterationRow:
    return IterationRow(number * S, number * S + wall, number, number, steps, episodes=0, wall_ns=wall)


def phases() -> Planted:
    """2 s of start-up, 3 s of prefill, 4 s of training with 1 s of evaluation in them, and 200 steps."""
    planted = Planted()
    planted.work(STARTUP, 2 * S)
    with planted.profile(PREFILL):
        planted.work("env_step", 3 * S)
    planted.work("update", 3 * S)
    with planted.profile(EVALUATION):
        planted.work("env_step", 1 * S)
    planted.profiler.add_steps(200)
    planted.profiler.add_episodes(4)
    return planted


def of(planted: Planted, iterations: Sequence[IterationRow] = ()) -> Progress:
    return progress(training_part(planted.snapshot()), iterations)


def test_steps_per_second_leave_out_start_up_prefill_and_evaluation():
    found = of(phases())
    assert (found.startup_ns, found.prefill_ns, found.evaluation_ns) == (2 * S, 3 * S, 1 * S)
    assert (found.wall_ns, found.training_ns) == (9 * S, 4 * S)
    assert found.steps_per_second == pytest.approx(200 / 3)
    assert found.seconds_per_episode == pytest.approx(3 / 4)
    assert found.steps_per_episode == 50


def test_an_export_of_a_trace_does_not_slow_the_training_down():
    planted = phases()
    planted.work("trace_export", 5 * S)
    assert of(planted).steps_per_second == pytest.approx(200 / 3)


def test_time_in_which_the_process_was_stopped_does_not_count():
    planted = phases()
    planted.work("suspended", 5 * S)
    found = of(planted)
    assert (found.suspended_ns, found.training_ns) == (5 * S, 4 * S)
    assert found.steps_per_second == pytest.approx(200 / 3)


def test_an_evaluation_by_workers_counts_as_long_as_the_driver_waits_for_it(planted, actor):
    """The ledger gives the time to the worker, which is not inside the evaluation."""
    span = planted.profile("env_step")
    with planted.profile(EVALUATION), planted.profile("env_wait", wait=True):
        actor.enter(span)
        planted.tick(2 * S)
        actor.exit(span)
    planted.work("update", 4 * S)
    planted.profiler.add_steps(200)
    found = of(planted)
    assert (found.evaluation_ns, found.training_ns) == (2 * S, 6 * S)
    assert found.steps_per_second == pytest.approx(200 / 4)


def test_an_evaluation_inside_an_evaluation_counts_once(planted):
    with planted.profile(EVALUATION):
        planted.tick(2 * S)
        planted.work(EVALUATION, 1 * S)
    assert of(planted).evaluation_ns == 3 * S


def test_nothing_counted_gives_no_rates(planted):
    planted.work("update", S)
    found = of(planted)
    assert (found.steps_per_second, found.seconds_per_episode, found.iteration_ns) == (None, None, None)
    assert (found.steps_per_iteration, found.steps_per_episode) == (None, None)


def iterated(*walls: int) -> Planted:
    planted = Planted()
    for wall in walls:
        with planted.profiler.iteration():
            planted.work("update", wall)
    return planted


WALLS = [1 * S, 2 * S, 3 * S, 4 * S, 10 * S]


def test_quantiles_are_exact_where_each_iteration_is_stored():
    found = of(iterated(*WALLS), [iteration(i, wall, 8) for i, wall in enumerate(WALLS)])
    spread = found.iteration_ns
    assert (spread.mean_ns, spread.p50_ns, spread.min_ns, spread.max_ns) == (4 * S, 3 * S, 1 * S, 10 * S)
    assert spread.p95_ns == 4 * S  # the value at 0.95 x 4, rounded down
    assert found.steps_per_iteration == 8


def test_quantiles_come_from_the_ledger_where_iterations_are_merged():
    merged = IterationRow(start=0, end=20 * S, first=0, last=4, steps=40, episodes=0, wall_ns=20 * S)
    found = of(iterated(*WALLS), [merged])
    spread = found.iteration_ns
    assert (spread.mean_ns, spread.min_ns, spread.max_ns) == (4 * S, 1 * S, 10 * S)
    assert spread.p50_ns == pytest.approx(3 * S, rel=0.03)
    assert found.steps_per_iteration == 8
