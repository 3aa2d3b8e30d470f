"""Stacks are read as they were written, and a damaged file is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from session.refusals import change, refused
from sessions import Written

from rlprof.session.reader import Session
from rlprof.session.stacks import Frame, Stack

TRAIN = Frame("train.py", "main", 12, True, "agent.learn()", True)
STEP = Frame("/lib/site-packages/gym.py", "Env.step", 7, False, "")


@pytest.fixture
def session(tmp_path: Path) -> Path:
    written = Written(tmp_path)
    written.work("env_step", 100)
    batch = written.batch()
    batch.frames = [(0, "train.py", "main", 12, 1, "agent.learn()", 1), (1, STEP.file, STEP.function, 7, 0, "", 0)]
    batch.stacks = [(0, 1, "[0,1]", 60, -4096), (1, 0, "[0]", 70, 0), (2, 0, "[]", 0, 0)]
    batch.tick_ns, batch.stacks_lost = 50, 3
    written.writer.write(batch)
    batch = written.batch()
    batch.stacks = [(0, 1, "[0,1]", 90, 4096)]
    batch.tick_ns, batch.stacks_lost = 50, 3
    written.writer.write(batch)
    written.writer.end("finished")
    written.writer.close()
    return written.path


def read(path: Path | str) -> list[Stack]:
    with Session(path) as session:
        return session.stacks()


def test_stacks_are_read_with_their_last_totals_the_longest_first(session):
    assert read(session) == [Stack(1, (TRAIN, STEP), 90, 4096), Stack(0, (TRAIN,), 70, 0)]
    with Session(session) as opened:
        assert opened.stacks().columns == ("node", "frames", "ns", "memory")
        assert opened.state is not None
        assert (opened.state.tick_ns, opened.state.stacks_lost) == (50, 3)


@pytest.mark.parametrize(
    ("statement", "because"),
    [
        ("UPDATE stack SET frames = '[9]'", "frames that are unknown"),
        ("UPDATE stack SET frames = '[0'", "frames that are unknown"),
        ("UPDATE stack SET frames = '[[0]]'", "frames that are unknown"),
        ("UPDATE stack SET node = 99", "belongs to no node"),
        ("UPDATE stack SET ns = -1", "table stack"),
        ("UPDATE stack SET ns = 4611686018427387904", "longer than any run"),
        ("UPDATE stack SET memory = 'much'", "table stack"),
        ("UPDATE frame SET user = 2", "table frame"),
        ("UPDATE frame SET line = -3", "table frame"),
        ("UPDATE frame SET source = NULL", "table frame"),
        ("DELETE FROM frame", "frames that are unknown"),
    ],
)
def test_damaged_stacks_are_refused(statement, because, session):
    change(session, statement)
    refused(session, because, read)


def test_a_reset_drops_the_stacks_from_before(tmp_path):
    written = Written(tmp_path)
    batch = written.batch()
    batch.frames, batch.stacks = [(0, "a.py", "f", 1, 1, "", 0)], [(0, 0, "[0]", 5, 0), (1, 0, "[]", 5, 0)]
    written.writer.write(batch)
    written.fake.profiler.reset()
    batch = written.batch()
    batch.stacks = [(0, 0, "[0]", 2, 0)]
    written.writer.write(batch)
    assert [(stack.ns, len(stack.frames)) for stack in read(written.end())] == [(2, 1)]
