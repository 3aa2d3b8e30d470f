"""The speedups on a command line, read and checked against a session."""

from __future__ import annotations

import pytest
from sessions import Written

from rlprof.analysis.lane_work import work_of
from rlprof.errors import RlprofError
from rlprof.session.reader import Session
from rlprof.whatif.speedups import read_speedups


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    written = Written(tmp_path_factory.mktemp("runs") / "planted_20260101-120000")
    for _ in range(8):
        with written.fake.profiler.iteration():
            written.work("env_step", 2_000_000)
            written.work("update", 1_000_000)
    with Session(written.end()) as session:
        return work_of(session)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["env_step=2x"], {"env_step": 0.5}),
        (["env_step=.5X", "update=free"], {"env_step": 2.0, "update": 0.0}),
        (["update=0"], {"update": 0.0}),
        ([], {}),
    ],
)
def test_a_speedup_is_the_part_of_the_time_that_is_left(work, words, left):
    assert read_speedups(words, work) == left


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("env_step=2", "env_step=2 is not a speedup. Write env_step=2x"),
        ("env_step=0x", "is not a speedup"),
        ("=2x", "is not a speedup"),
        ("env_stp=2x", "has no operation env_stp in its iterations. Did you mean env_step?"),
        ("unattributed=2x", "has no operation unattributed in its iterations. Operations: env_step, update."),
        ("queue_wait=2x", "queue_wait is a wait for other work"),
    ],
)
def test_a_word_that_cannot_be_used_is_refused_with_what_to_do(work, word, message):
    with pytest.raises(RlprofError) as raised:
        read_speedups([word], work)
    assert message in str(raised.value)


def test_a_session_without_operations_says_so(tmp_path):
    written = Written(tmp_path / "run")
    for _ in range(8):
        with written.fake.profiler.iteration():
            written.fake.tick(1_000)
    with Session(written.end()) as session, pytest.raises(RlprofError, match=r"It has no operations there at all\.$"):
        read_speedups(["env_step=2x"], work_of(session))
