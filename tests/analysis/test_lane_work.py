"""From a session with planted times to the answer of `rlprof whatif`."""

from __future__ import annotations

import pytest
from sessions import Written

from rlprof.analysis.lane_work import DRIVER, Work, work_of
from rlprof.analysis.prediction import what_if
from rlprof.session.reader import Session
from rlprof.whatif.text import to_text


def recorded(written: Written) -> Work:
    with Session(written.end()) as session:
        return work_of(session)


def test_one_after_the_other(written):
    """1,000 ns per iteration: 300 in env_step, of which 100 are in render; 600 in update, 400 of them computing."""
    for _ in range(12):
        written.fake.profiler.iteration()
        with written.fake.profile("env_step"):
            written.fake.tick(200)
            written.work("render", 100)
        written.work("update", 600, cpu=400)
        written.fake.tick(100)
        written.fake.profiler.add_steps(10)
    work = recorded(written)
    assert sum(batch.iterations for batch in work.batches) == 9  # the first three are to warm up
    first = {piece.operations: (piece.work_ns, piece.cpu_ns, piece.lane) for piece in work.batches[0].pieces}
    assert first["env_step", "render"] == (100, 100, DRIVER)
    assert first[("update",)] == (600, 400, DRIVER)
    found = what_if(work, {"env_step": 0.5})
    assert found.rate.estimate == pytest.approx(1e7)
    assert found.asked.rate.estimate == pytest.approx(1e10 / 850)
    assert [one.operation for one in found.ranking] == ["update", "env_step", "render"]
    assert [one.share for one in found.ranking] == pytest.approx([0.6, 0.3, 0.1])
    assert " ".join(to_text(found).split()).startswith(
        "With env_step 2x as fast, the training would make 11,764,706 [11,764,706, 11,764,706] steps per second instead"
        " of 10,000,000. It would be faster by 17.6% [17.6, 17.6]."
    )
    both = what_if(work, {"env_step": 0.5, "update": 0.0})
    assert to_text(both).startswith("With env_step 2x as fast and update taking no time, the training would make ")


def test_a_thread_that_the_driver_waits_for(written, actor):
    """1,000 ns: 300 update, 600 waiting while a worker steps, 100 waiting while no lane works."""
    fake = written.fake
    span = fake.profile("env_step")
    for _ in range(12):
        fake.profiler.iteration()
        written.work("update", 300)
        with fake.profile("future_wait", wait=True):
            actor.enter(span)
            fake.tick(600)
            actor.exit(span)
            fake.tick(100)
        fake.profiler.add_steps(10)
    found = what_if(recorded(written), {"env_step": 0.5})
    assert found.topology.model == "pool"
    assert found.asked.gain.estimate == pytest.approx(1 / 0.7 - 1)
    assert [one.operation for one in found.ranking] == ["env_step", "update"]  # a wait is nothing to make faster
