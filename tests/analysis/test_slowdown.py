"""The cost of an operation from planted slowdowns."""

from __future__ import annotations

import random

import pytest
from lanes import queue, serial, session

from rlprof.analysis.inference import Interval
from rlprof.analysis.prediction import Prediction, what_if
from rlprof.analysis.slowdown import SLOWDOWN_SIZES, SlowdownBlock, experiment, extrapolate, floor_of
from rlprof.analysis.topology import topology
from rlprof.whatif.verification import verify


def blocks(cost: float, kink: float = 0.0, noise: float = 0.01, count: int = 20) -> list[SlowdownBlock]:
    """An operation of such a share of an iteration; from `kink` on, a slowdown costs nothing more."""
    chance = random.Random(1)

    def time(size: float) -> float:
        return (1 + cost * (min(size, kink) if kink else size)) * chance.gauss(1, noise)

    return [SlowdownBlock((time(0) + time(0)) / 2, tuple(map(time, SLOWDOWN_SIZES))) for _ in range(count)]


def test_a_planted_cost_is_found():
    found = experiment("env_step", blocks(0.4))
    assert found.cost.estimate == pytest.approx(0.4, abs=0.02)
    assert found.half_width < 0.02
    assert not found.kink


def test_intervals_hold_the_truth_as_often_as_they_say():
    chance = random.Random(3)
    held = 0
    for _ in range(400):
        base, *slowed = ([(1 + 0.3 * size) * chance.gauss(1, 0.03) for _ in range(12)] for size in (0, *SLOWDOWN_SIZES))
        cost = experiment("x", list(map(SlowdownBlock, base, zip(*slowed)))).cost
        held += cost.low <= 0.3 <= cost.high
    assert 0.91 < held / 400 < 0.985


def test_faster_is_what_slower_was_on_the_other_side():
    found = {"env_step": experiment("env_step", blocks(0.4, noise=0.0))}
    gain = extrapolate(found, {"env_step": 0.5}, floor=0.0)
    assert gain.estimate == pytest.approx(1 / 0.8 - 1)
    bounded = extrapolate(found, {"env_step": 0.5}, floor=0.9)
    assert bounded.estimate == pytest.approx(1 / 0.9 - 1)


def test_slowdowns_that_disagree_are_not_extrapolated():
    found = experiment("env_step", blocks(0.4, kink=0.5))
    assert found.kink
    assert extrapolate({"env_step": found}, {"env_step": 0.5}, 0.0) is None


def test_the_floor_is_what_another_lane_computes():
    work = session([queue(200, [("env_step", 100.0)], [("update", 60.0)])])
    assert floor_of(work, {"env_step": 0.5}) == pytest.approx(0.6, rel=0.01)
    assert floor_of(session([serial([[("update", 10.0)]])], cores=1), {"update": 0.25}) == pytest.approx(0.25)


def test_prediction_and_experiment_agree_or_are_not_trusted():
    work = session([serial([[("env_step", 40.0), ("update", 60.0)]])] * 8)
    asked = what_if(work, {"env_step": 0.5}).asked
    agreed = verify(work, topology(work), asked, {"env_step": experiment("env_step", blocks(0.4))})
    assert agreed.trusted
    assert agreed.verdict == "Prediction and experiment agree."
    for wrong, reason in (
        (experiment("env_step", blocks(0.2)), "prediction and experiment disagree"),
        (experiment("env_step", blocks(0.4, kink=0.5)), "the two slowdowns of env_step disagree"),
        (experiment("env_step", [], why_not="env_step runs in asyncio tasks"), "env_step runs in asyncio tasks"),
        (experiment("env_step", blocks(0.4, count=1)), "there were too few slowdowns"),
    ):
        found = verify(work, topology(work), asked, {"env_step": wrong})
        assert not found.trusted
        assert f"Not trusted: {reason}" in found.verdict


def test_an_interval_that_is_not_known_is_the_estimate():
    work = session([serial([[("env_step", 40.0), ("update", 60.0)]])])
    asked = Prediction({"env_step": 0.5}, Interval(0.25, None, None), None, "")
    assert verify(work, topology(work), asked, {"env_step": experiment("env_step", blocks(0.4))}).trusted


def test_where_the_model_expects_a_kink_slowdowns_must_do_what_it_predicts_of_them():
    """The learner is nearly as slow as the actor: faster brings nothing, slower costs all that it is."""
    work = session([queue(400, [("env_step", 100.0)], [("update", 95.0)])] * 8)
    asked = what_if(work, {"update": 0.5}).asked
    assert asked.gain.estimate == pytest.approx(0.0, abs=0.01)

    def slowed(cost: float) -> list[SlowdownBlock]:
        return [SlowdownBlock(100.0, tuple(max(100.0, 95.0 + cost * size) for size in SLOWDOWN_SIZES))] * 12

    as_predicted = verify(work, topology(work), asked, {"update": experiment("update", slowed(95.0))})
    assert as_predicted.trusted
    assert as_predicted.experiment is None
    otherwise = verify(work, topology(work), asked, {"update": experiment("update", slowed(40.0))})
    assert not otherwise.trusted
    assert "but 42% was predicted" in otherwise.verdict
