"""Worker processes and threads that are started again and again."""

from __future__ import annotations

import pytest
from advised import amdahl, at, given, with_lines
from sessions import Written, facts_of

from rlprof.analysis.advice.worker_restarts import worker_restarts

MS = 1_000_000


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """Per iteration 60 ms of process_wait and 40 of env_step."""
    written = Written(tmp_path_factory.mktemp("restarts"))
    for _ in range(20):
        with written.fake.profiler.iteration():
            written.work("process_wait", 60 * MS)
            written.work("env_step", 40 * MS)
    return facts_of(written.end())


def waiting(facts, *lines):
    return worker_restarts(with_lines(facts, {"process_wait": lines}))


@pytest.mark.parametrize(
    "source",
    [
        "pool = mp.Pool(4)",
        "with ProcessPoolExecutor(2) as pool:",
        "threads = [Thread(target=collect) for _ in envs]",
        "worker.start()",
        "envs = gym.vector.AsyncVectorEnv(makers)",
    ],
)
def test_the_line_that_starts_workers_is_named(facts, source):
    lines = at("train.py:7", source, 0.4, "evaluate"), at("train.py:9", "pool.join()", 0.3, "evaluate")
    finding = given(waiting(facts, *lines), "worker_restarts")
    assert finding.place.where == "train.py:7"
    assert "evaluate() starts worker processes" in finding.cause
    assert f"{100 * 0.7 * 0.6:.1f}%" in finding.cause
    assert 1.3 < finding.gain.estimate <= amdahl(0.7 * 0.6)


def test_waiting_for_the_work_of_workers_is_no_restart(facts):
    assert waiting(facts, at("train.py:7", "pool.start()", 0.05), at("train.py:9", "pool.join()", 0.9)) is None


@pytest.mark.parametrize(
    "source", ["results = pool.map(f, jobs)", "self.env.start()", "processed = Processor(obs)", "names = ', '.join(x)"]
)
def test_other_lines_start_nothing(facts, source):
    assert waiting(facts, at("train.py:7", source, 1.0)) is None
