"""Which steps are captured, and the warnings if there are too few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlprof.capture.torch.schedule import ACTIVE, DONE, WAIT, WARMUP, Schedule, announced, stopped_early
from rlprof.capture.torch.size import StepSizes, begins_next

SCHEDULES = st.builds(Schedule, st.integers(0, 5), st.integers(0, 3), st.integers(1, 5), st.integers(1, 3))


def test_states_follow_each_other():
    schedule = Schedule(wait=2, warmup=1, active=2, repeat=2)
    cycle = [WAIT, WAIT, WARMUP, ACTIVE, ACTIVE]
    assert [schedule.state(step) for step in range(12)] == [*cycle, *cycle, DONE, DONE]
    assert schedule.needed == 10
    assert [schedule.captured(ran) for ran in (0, 3, 4, 5, 9, 50)] == [0, 0, 1, 2, 3, 4]


@given(SCHEDULES, st.integers(1, 60))
def test_a_schedule_made_to_fit_is_done_in_time(schedule, steps):
    fitting = schedule.fitting(steps)
    assert fitting.needed <= steps
    assert fitting.captured(steps) >= 1
    if schedule.needed <= steps:
        assert fitting == schedule


def test_no_schedule_fits_into_no_steps():
    assert Schedule().fitting(0) is None
    assert "Train for longer" in stopped_early(Schedule(), "epoch", 0)


@pytest.mark.parametrize("wrong", [{"active": 0}, {"wait": -1}, {"warmup": 1.5}, {"repeat": 0}, {"active": True}])
def test_wrong_schedules_are_refused(wrong):
    with pytest.raises(ValueError, match="must be a whole number of at least"):
        Schedule(**wrong)


def test_too_few_steps_are_announced_with_options_that_would_fit():
    assert announced(Schedule(5, 1, 3), "epoch", 9) is None
    message = announced(Schedule(5, 1, 3), "epoch", 6)
    assert message == (
        "this run has 6 epochs, but the torch capture needs 9 (wait 5 + warmup 1 + active 3). "
        "These options would fit: --torch-profiler-wait 2 --torch-profiler-warmup 1 --torch-profiler-active 3"
    )


def test_the_warning_about_an_early_end_has_the_steps_run_and_needed():
    assert stopped_early(Schedule(1, 1, 3), "iteration", 5) is None
    message = stopped_early(Schedule(1, 1, 3), "iteration", 4)
    assert message.startswith("the run ended after 4 iterations, but the torch capture needed 5 ")
    assert "only 2 of 3 active steps were captured" in message
    assert "no trace was written" in stopped_early(Schedule(1, 1, 3), "iteration", 1)


def test_iterations_are_expected_as_regularly_as_before():
    assert begins_next([False, False, True, False, False, True], 4) == [False, False, True, False]
    assert begins_next([True, True, True], 3) == [True, True, True]
    assert begins_next([False, False], 2) == [False, False]
    assert begins_next([False, False, False, True], 4) == [False, False, True, False]


def test_the_size_of_a_step_that_was_not_in_the_warm_up_is_estimated_by_its_duration():
    sizes = StepSizes(rest=10.0, packing=0.5)
    sizes.bytes[False] += [100.0, 120.0]
    assert sizes.predict([False, False]) == (10 + 220) * 0.5
    assert sizes.predict([False, True]) is None
    sizes.seconds[False] += [1.0]
    sizes.seconds[True] += [3.0, 5.0]
    assert sizes.predict([False, True]) == (10 + 110 + 440) * 0.5
