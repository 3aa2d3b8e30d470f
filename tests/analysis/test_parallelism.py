"""Use of the cores, against planted times."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import Actor
from sessions import Written, facts_of, sample

from rlprof.analysis.parallelism import CHILDREN, IDLE, OUTSIDE, Parallelism, parallelism
from rlprof.analysis.resources import resources
from rlprof.analysis.training import training_of
from rlprof.session.reader import Session

MS = 1_000_000


def two_lanes(written: Written, actor: Actor, **figures: float) -> Parallelism:
    """1 s on 4 cores. The driver updates for 600 ms and waits for 400 ms, in which a worker steps for 300 ms."""
    span = written.fake.profile("env_step")
    written.work("update", 600 * MS)
    with written.fake.profile("future_wait", wait=True):
        actor.enter(span)
        written.fake.tick(300 * MS, cpu=200 * MS)
        actor.exit(span)
        written.fake.tick(100 * MS, cpu=0)
    written.samples = [sample(1_000 * MS, **figures)] if figures else []
    return facts_of(written.end()).parallelism


def test_efficiency_is_load_balance_times_communication(written, actor):
    """Useful are 600 and 300 ms of 1 s on 2 lanes: 45 %, which is 450 / 600 x 600 / 1000."""
    found = two_lanes(written, actor)
    assert (found.lanes, found.cores) == (2, 4)
    assert found.efficiency == pytest.approx(0.45)
    assert found.load_balance == pytest.approx(0.75)
    assert found.communication_efficiency == pytest.approx(0.6)
    assert [(worker.useful_ns, worker.share) for worker in found.workers] == [(600 * MS, 60.0), (300 * MS, 30.0)]


def test_capacity_sums_to_wall_time_times_cores(written, actor):
    """The process used 150 % and its children 50 % of a core: 4 s hold 1.5 s and 0.5 s of them."""
    found = two_lanes(written, actor, cpu=150.0, children_cpu=50.0)
    parts = {part.name: part.cpu_ns for part in found.capacity}
    assert sum(parts.values()) == 4_000 * MS
    assert sum(part.share for part in found.capacity) == pytest.approx(100.0)
    assert parts["learning"] == 600 * MS
    assert parts[CHILDREN] == 500 * MS
    assert parts[IDLE] == (4_000 - 1_500 - 500) * MS
    in_spans = sum(ns for name, ns in parts.items() if name not in (OUTSIDE, CHILDREN, IDLE))
    assert parts[OUTSIDE] == 1_500 * MS - in_spans


def test_concurrency_is_only_given_for_operations_on_several_lanes(written, actor):
    span = written.fake.profile("env_step")
    with written.fake.profile("update"):
        actor.enter(span)
        with written.fake.profile("env_step"):
            written.fake.tick(300)
        written.fake.tick(100)
        actor.exit(span)
        written.fake.tick(100)
    found = facts_of(written.end()).parallelism
    assert [(item.operation, item.mean) for item in found.concurrency] == [("env_step", pytest.approx(700 / 500))]


def test_without_spans_there_are_no_lanes(written):
    written.fake.tick(100)
    found = facts_of(written.end()).parallelism
    assert (found.lanes, found.efficiency, found.load_balance, found.workers) == (0, 0.0, 0.0, ())


def test_only_cpu_time_of_the_training_is_in_its_capacity(written, actor):
    """A worker process computed for 14 s of start-up without a span: none of it is in the 4 s of the training."""
    span = written.fake.profile("env_step")
    written.work("update", 600 * MS)
    with written.fake.profile("future_wait", wait=True):
        actor.enter(span)
        written.fake.tick(400 * MS, cpu=200 * MS)
        actor.exit(span)
    written.samples = [sample(1_000 * MS, cpu=100.0, children_cpu=30.0)]
    with Session(written.end()) as session:
        training = training_of(session)
        used = resources(session, training)
    snapshot = training.snapshot
    lanes = [lane if lane.on_driver else replace(lane, kind="process") for lane in snapshot.lanes]
    worker = next(lane.id for lane in lanes if not lane.on_driver)
    busy = {"cpu_ns": 14_000 * MS, "self_ns": 14_000 * MS}
    nodes = [
        replace(node, **busy) if node.lane == worker and node.operation is None else node for node in snapshot.net_nodes
    ]
    assert any(node.cpu_ns == 14_000 * MS for node in nodes)
    found = parallelism(replace(snapshot, lanes=lanes).only(nodes), used, 4)
    parts = {part.name: part.cpu_ns for part in found.capacity}
    assert sum(parts.values()) == 4_000 * MS
    assert parts[OUTSIDE] <= 1_000 * MS
    assert parts[CHILDREN] == pytest.approx(300 * MS - parts["environment"])


def test_spans_of_more_cpu_time_than_the_cores_have_are_no_table(written):
    """10 s in spans of a worker's start-up do not fit the 4 s that 4 cores have in the training of 1 s."""
    written.work("update", 1_000 * MS)
    with Session(written.end()) as session:
        training = training_of(session)
        used = resources(session, training)
    busy = {"cpu_ns": 10_000 * MS, "self_ns": 10_000 * MS}
    nodes = [replace(node, **busy) if node.operation else node for node in training.snapshot.net_nodes]
    assert parallelism(training.snapshot, used, 4).capacity is not None
    assert parallelism(training.snapshot.only(nodes), used, 4).capacity is None
