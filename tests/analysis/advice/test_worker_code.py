"""Worker processes whose own code takes long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import at, given
from sessions import Written, facts_of

from rlprof.analysis.advice.worker_code import worker_code

MS = 1_000_000
S = 1_000 * MS


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """Per iteration 60 ms of waiting for a pipe and 40 of learning: 12 and 8 s in all."""
    written = Written(tmp_path_factory.mktemp("workers"))
    for _ in range(200):
        with written.fake.profiler.iteration():
            written.work("pipe_wait", 60 * MS, 0, wait=True)
            written.work("backward", 40 * MS)
    return facts_of(written.end())


def with_workers(facts, *lines):
    """The same facts with lines that workers ran outside of operations, of 10 s of samples."""
    timed = tuple(replace(line, ns=line.share * 10 * S) for line in lines)
    return replace(facts, code=replace(facts.code, in_workers=timed))


def test_the_line_that_the_training_waits_for_is_named(facts):
    line = at("train.py:37", "net.load_state_dict(torch.load(WEIGHTS))", 0.75, "actor")
    finding = given(worker_code(with_workers(facts, line)), "worker_code")
    assert finding.place.where == "train.py:37"
    assert "loads network weights from a file at every call, takes 75.0% of the worker processes' time" in finding.cause
    assert "waits for them for 60.0% of its time" in finding.cause
    assert finding.operations == ("pipe_wait",)
    # Taking turns: 0.6 x 0.75 of the time. At the same time: all of the waiting.
    assert finding.gain.estimate == pytest.approx(1 / (1 - 0.6 * 0.75 * 0.9))
    assert finding.gain.low < finding.gain.estimate < 1 / 0.4 < finding.gain.high


def test_lines_in_which_a_worker_waits_itself_are_not_blamed(facts):
    waiting = at("train.py:30", "command = pipe.recv()", 0.6, "worker")
    busy = at("train.py:37", "simulate(state)", 0.3, "worker")
    assert worker_code(with_workers(facts, waiting, busy)).place.where == "train.py:37"
    assert worker_code(with_workers(facts, waiting)) is None


def test_lines_that_take_little_are_fine(facts):
    assert worker_code(with_workers(facts, at("train.py:37", "simulate(state)", 0.15))) is None


def test_a_training_that_does_not_wait_needs_no_faster_workers(tmp_path):
    written = Written(tmp_path)
    for _ in range(50):
        written.work("pipe_wait", 10 * MS, 0, wait=True)
        written.work("backward", 90 * MS)
    busy = with_workers(facts_of(written.end()), at("train.py:37", "simulate(state)", 0.9))
    assert worker_code(busy) is None
