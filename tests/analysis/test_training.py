"""Which part of a run is training: start-up, prefill, warm-up and the end lie outside, with known times."""

from __future__ import annotations

import random

import pytest
from planted import Planted
from sessions import Written, facts_of, report_of

from rlprof.analysis.breakdown import breakdown
from rlprof.analysis.training import WARM_UP, training_of, training_part
from rlprof.ledger.catalogue import BESIDE_TRAINING
from rlprof.report.markdown import to_markdown
from rlprof.report.text import to_text
from rlprof.session.reader import Session

MS = 1_000_000


def outside(facts):
    return {part.name: part.ns // MS for part in facts.breakdown.outside}


@pytest.fixture
def report(written):
    """Six seconds of start-up, then two of training at 500 steps per second."""
    written.work("startup", 6_000 * MS)
    for _ in range(100):
        written.work("env_step", 12 * MS)
        written.work("policy_forward", 8 * MS)
        written.fake.profiler.add_steps(10)
    return report_of(written.end())


def test_shares_are_of_the_training_time(report):
    whole = report.facts.breakdown
    assert (whole.wall_ns, whole.training_ns) == (8_000 * MS, 2_000 * MS)
    assert outside(report.facts) == {"startup": 6_000}
    shares = {row.operation: row.share for row in whole.rows}
    assert shares == {"env_step": 60.0, "policy_forward": 40.0, "unattributed": 0.0, "rlprof": 0.0}
    assert {item.operation: item.share for item in report.facts.operations} == {
        "env_step": 60.0,
        "policy_forward": 40.0,
    }
    assert (whole.largest.name, whole.largest.ledger_ns, whole.largest.share) == ("env_step", 1_200 * MS, 60.0)


def test_nothing_is_recommended_for_start_up(report):
    findings = report.findings
    assert "startup" not in {item.operation for item in (*findings.bottlenecks, *findings.recommendations)}
    expected = findings.expectation
    assert sum(part.typical_ns for part in expected.parts) + sum(loss.ns for loss in expected.losses) == 2_000 * MS
    assert expected.steps_per_second == pytest.approx(500)


@pytest.mark.parametrize("render", [to_text, to_markdown])
def test_start_up_stands_beside_the_speed(report, render):
    text = render(report)
    assert "500 steps/s over 2.00 s of training" in text
    assert "6.00 s of start-up" in text


@pytest.mark.parametrize("name", sorted(BESIDE_TRAINING))
def test_each_operation_beside_the_training_lies_outside_with_what_it_calls(planted, name):
    with planted.profile(name):
        planted.tick(30)
        planted.work("env_step", 50)
    with planted.profile("rollout"):
        planted.work("env_step", 100)
        planted.work(name, 20)
    found = planted.breakdown()
    assert [(part.name, part.ns) for part in found.outside] == [(name, 100)]
    assert (found.wall_ns, found.training_ns) == (200, 100)
    assert {row.operation: row.ledger_ns for row in found.rows if row.ledger_ns} == {"env_step": 100}


def test_the_parts_outside_are_in_the_order_of_the_run(planted):
    for name in ("startup", "after_training", "prefill", "trace_export", "suspended"):
        planted.work(name, 10)
    planted.work("env_step", 10)
    names = [part.name for part in planted.breakdown().outside]
    assert names == ["startup", "prefill", "trace_export", "suspended", "after_training"]


def test_a_prefill_by_workers_lies_outside_too(planted, actor):
    """The driver waits 60 of 80 ns for a worker, whose account has that time. Later it waits 40 for it in training."""

    def waiting(ns):
        span = planted.profile("env_step")
        with planted.profile("env_wait", wait=True):
            actor.enter(span)
            planted.tick(ns)
            actor.exit(span)

    with planted.profile("prefill"):
        planted.tick(20)
        waiting(60)
    waiting(40)
    planted.work("update", 60)
    found = planted.breakdown()
    assert [(part.name, part.ns) for part in found.outside] == [("prefill", 80)]
    assert {row.operation: row.ledger_ns for row in found.rows if row.ledger_ns} == {"update": 60, "env_step": 40}


@pytest.mark.parametrize("seed", range(20))
def test_training_and_outside_are_the_whole_run_whatever_ran(seed):
    chance = random.Random(seed)
    planted = Planted()

    def spans(depth):
        for _ in range(chance.randrange(5)):
            with planted.profile(chance.choice([*sorted(BESIDE_TRAINING), "env_step", "update", "evaluation"])):
                planted.tick(chance.randrange(100))
                if depth < 3:
                    spans(depth + 1)
        planted.tick(chance.randrange(10))

    spans(0)
    snapshot = planted.snapshot()
    training = training_part(snapshot)
    training.snapshot.check()
    assert training.snapshot.wall_ns + sum(part.ns for part in training.outside) == snapshot.wall_ns
    breakdown(training).check()


def iterations(folder, walls, steps=10, backward=10):
    """Iterations with some ms of loss, 10 ms of backward, and 10 steps."""
    written = Written(folder)
    for number, wall in enumerate(walls):
        with written.fake.profiler.iteration():
            written.work("loss", wall * MS)
            written.work("backward", backward * MS)
            written.fake.profiler.add_steps(steps if isinstance(steps, int) else steps[number])
    return written


def test_a_first_iteration_that_stands_out_is_warm_up(tmp_path):
    """It takes 500 ms longer than the nine others, in loss: a compilation."""
    facts = facts_of(iterations(tmp_path, [510, *[10] * 9]).end())
    assert outside(facts) == {WARM_UP: 500}
    assert facts.breakdown.training_ns == 200 * MS
    assert {item.operation: item.ledger_ns for item in facts.operations} == {"loss": 100 * MS, "backward": 100 * MS}
    assert facts.progress.warm_up_ns == 500 * MS
    assert facts.progress.steps_per_second == pytest.approx(100 / 0.2)


@pytest.mark.parametrize(
    ("walls", "steps"),
    [
        pytest.param([20, *[10] * 9], 10, id="twice as long"),
        pytest.param([110, *[10] * 1_000], 10, id="too short beside the whole"),
        pytest.param([510, 10, 10], 10, id="too few others"),
        pytest.param([10, 510, *[10] * 8], 10, id="another iteration"),
        pytest.param([510, *[10] * 9], [260, *[10] * 9], id="more steps"),
        pytest.param([10] * 10, 10, id="all alike"),
    ],
)
def test_a_first_iteration_that_does_not_stand_out_is_training(tmp_path, walls, steps):
    facts = facts_of(iterations(tmp_path, walls, steps).end())
    assert outside(facts) == {}
    assert facts.progress.warm_up_ns == 0
    assert facts.breakdown.training_ns == facts.breakdown.wall_ns


def test_a_short_first_iteration_may_be_warm_up_per_step(tmp_path):
    """As long as the others, for a tenth of their steps: 90 % of it are no work."""
    facts = facts_of(iterations(tmp_path, [100, *[100] * 9], [10, *[100] * 9], backward=0).end())
    assert outside(facts) == {WARM_UP: 90}


@pytest.fixture
def closing(written):
    """A second of start-up, two of training at 500 steps per second, and one to close the environments."""
    ledger = written.fake.profiler.ledger
    ledger.begin_startup(written.fake.profile("startup"))
    written.fake.tick(600 * MS)
    with written.fake.profile("env_wait", wait=True):
        written.fake.tick(400 * MS)
    ledger.end_startup()
    for _ in range(100):
        written.work("env_step", 20 * MS)
        written.fake.profiler.add_steps(10)
    return written


@pytest.mark.parametrize("last", [None, "evaluation", "env_close"])
def test_what_comes_after_the_training_is_no_part_of_it(closing, last):
    if last is None:
        closing.fake.tick(1_000 * MS)
    else:
        closing.work(last, 1_000 * MS)
    facts = facts_of(closing.end())
    progress = facts.progress
    assert outside(facts) == {"startup": 1_000, "after_training": 1_000}
    assert (progress.startup_ns, progress.after_ns, progress.training_ns) == (1_000 * MS, 1_000 * MS, 2_000 * MS)
    assert progress.steps_per_second == pytest.approx(500)
    assert facts.breakdown.largest.share == 100.0


@pytest.mark.parametrize("still_open", [False, True])
def test_an_evaluation_after_the_last_iteration_is_no_training(tmp_path, still_open):
    """Ten iterations of 20 ms with an evaluation of 5 ms each, then a second of evaluation and 100 ms of no span."""
    written = Written(tmp_path)
    for _ in range(10):
        written.fake.profiler.iteration()
        written.work("loss", 15 * MS)
        written.work("evaluation", 5 * MS)
        written.fake.profiler.add_steps(10)
    if not still_open:
        with written.fake.profiler.iteration():  # closes the last one, and is itself closed at once
            written.fake.profiler.add_steps(1)
    written.work("evaluation", 1_000 * MS)
    written.fake.tick(100 * MS)
    facts = facts_of(written.end())
    assert outside(facts)["after_training"] == pytest.approx(1_100, abs=2)
    times = {item.operation: item.ledger_ns / MS for item in facts.operations}
    assert times == {"loss": pytest.approx(150, abs=1), "evaluation": pytest.approx(50, abs=1)}
    assert facts.progress.steps_per_second == pytest.approx(facts.progress.steps / 0.15, rel=0.01)


def test_an_open_last_iteration_like_the_others_is_training(tmp_path):
    """The last update comes after the last step, as in every iteration."""
    written = Written(tmp_path)
    for _ in range(10):
        written.fake.profiler.iteration()
        written.work("env_step", 10 * MS)
        written.fake.profiler.add_steps(10)
        written.work("loss", 10 * MS)
    assert outside(facts_of(written.end())) == {}


def test_the_whole_of_a_session_is_training_and_outside(closing):
    closing.work("prefill", 100 * MS)
    closing.fake.tick(7 * MS)
    with Session(closing.end()) as session:
        training = training_of(session)
        training.snapshot.check()
        assert training.snapshot.wall_ns + sum(part.ns for part in training.outside) == session.snapshot().wall_ns


def test_a_run_without_training_is_only_start_up(written):
    written.work("startup", 100 * MS)
    facts = facts_of(written.end())
    assert facts.breakdown.training_ns == 0
    assert (facts.operations, facts.progress.steps_per_second) == ((), None)
    assert outside(facts) == {"startup": 100}
