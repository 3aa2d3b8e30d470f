"""Predictions against trainings on paper, in which something was really made faster."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import Paper, faster, pool, queue, serial, session

from rlprof.analysis.lane_work import DRIVER, Piece, Work
from rlprof.analysis.prediction import what_if
from rlprof.analysis.topology import predict, topology

durations = st.floats(1.0, 100.0)
alike = st.floats(50.0, 100.0)
"""With this many, several lanes work at most times, which shows that they share something."""
speeds = st.sampled_from((0.0, 0.25, 0.5, 2 / 3, 2.0))


def predicted(work: Work, saving: dict[str, float], stays: bool = True) -> float:
    return predict(work.whole, topology(work), saving, stays).wall_ns


@given(st.lists(st.tuples(durations, durations), min_size=1, max_size=6), speeds, speeds)
def test_one_after_the_other_is_exact(steps, env, update):
    tasks = [[("env_step", a), ("update", b)] for a, b in steps]
    saving = {"env_step": env, "update": update}
    work = session([serial(tasks)])
    assert topology(work).model == "serial"
    assert predicted(work, saving) == pytest.approx(serial([faster(task, saving) for task in tasks]).end, abs=1e-6)


@given(durations, st.lists(durations, min_size=2, max_size=5), speeds)
def test_a_pool_waits_for_its_slowest(own, tasks, left):
    """All lanes run the same operation, some for longer. The wait shrinks by the same factor."""
    steps = [([("policy_forward", own)], [[("env_step", task)] for task in tasks])] * 4
    saving = {"env_step": left}
    work = session([pool(steps)])
    assert topology(work).model == "pool"
    quicker = [(one, [faster(task, saving) for task in others]) for one, others in steps]
    assert predicted(work, saving) == pytest.approx(pool(quicker).end, rel=1e-6)


def test_work_outside_of_the_slowest_lane_gains_nothing():
    """Summed or shared, `render` has a large part of the time, but the driver does not wait for it."""
    steps = [([("update", 10.0)], [[("env_step", 100.0)], [("render", 60.0)]])] * 5
    work = session([pool(steps)])
    assert predicted(work, {"render": 0.0}) == pytest.approx(550)
    quicker = pool([(own, [[("env_step", 50.0)], [("render", 60.0)]]) for own, _ in steps])
    assert predicted(work, {"env_step": 0.5}) == pytest.approx(quicker.end)


@given(st.lists(alike, min_size=2, max_size=5), st.lists(alike, min_size=2, max_size=5), speeds)
def test_threads_that_share_the_gil_take_as_long_as_all_of_them(envs, renders, left):
    tasks = [*([("env_step", one)] for one in envs), *([("render", one)] for one in renders)]
    steps = [([("update", 10.0)], tasks)] * 3
    saving = {"render": left}
    work = session([pool(steps, one_at_a_time=True)])
    how = topology(work)
    assert (how.model, how.groups[0].limit) == ("pool", "the GIL")
    quicker = [(own, [faster(task, saving) for task in tasks]) for own, tasks in steps]
    assert predicted(work, saving) == pytest.approx(pool(quicker, one_at_a_time=True).end, rel=1e-6)


@pytest.mark.parametrize("left", [0.0, 0.25, 0.5, 0.8, 2.0])
@pytest.mark.parametrize(("actor", "learner"), [(100.0, 30.0), (100.0, 90.0), (30.0, 100.0), (90.0, 100.0)])
@pytest.mark.parametrize("operation", ["env_step", "update"])
def test_beside_each_other_the_slower_decides(actor, learner, left, operation):
    tasks = [("env_step", 0.8 * actor), ("policy_forward", 0.2 * actor)], [("update", learner)]
    saving = {operation: left}
    work = session([queue(200, *tasks)])
    assert topology(work).model == "async"
    truth = queue(200, *(faster(task, saving) for task in tasks)).end
    assert predicted(work, saving) == pytest.approx(truth, rel=0.01)


def test_it_is_never_less_than_the_cores_allow():
    """Two lanes on one core, each of which could be three times as fast alone."""
    steps = [([("update", 100.0)], [[("env_step", 50.0)], [("env_step", 50.0)]])] * 3
    work = session([pool(steps, one_at_a_time=True)], kind="process", cores=1)
    found = predict(work.batches[0], topology(work), {"env_step": 0.25})
    assert found.wall_ns == pytest.approx(3 * 125)
    tight = session([pool(steps)], kind="process", cores=1)
    assert predict(tight.batches[0], topology(tight), {"update": 0.0}).bound == "the cores"


def test_the_ranking_is_by_gain_and_not_by_summed_time():
    """Four lanes of `render` sum to four times the wall time, and hide behind one lane of `env_step`."""
    chance = random.Random(1)
    papers: list[Paper] = []
    for _ in range(12):
        long = chance.uniform(95, 105)
        lanes = [[("env_step", long)], *([("render", 80.0)] for _ in range(4))]
        papers.append(pool([([("update", 40.0)], lanes)] * 5))
    found = what_if(session(papers), {"env_step": 0.5, "update": 0.5})
    assert [one.operation for one in found.ranking] == ["update", "env_step", "render"]
    assert found.ranking[-1].free.gain.estimate == pytest.approx(0.0, abs=1e-6)
    assert found.asked.gain.low < found.asked.gain.estimate < found.asked.gain.high


def test_the_innermost_that_is_named_counts():
    piece = Piece(("rollout", "env_step"), DRIVER, "main", "thread", True, 10.0, 10.0, 10.0, 0.0)
    work = Work(1, True, (session([serial([[("update", 10.0)]])]).batches[0],))
    batch = work.batches[0]
    both = Work(1, True, (type(batch)(1, 20.0, 1, (*batch.pieces, piece)),))
    assert predicted(both, {"rollout": 0.5}) == pytest.approx(15)
    assert predicted(both, {"rollout": 0.5, "env_step": 0.25}) == pytest.approx(12.5)
