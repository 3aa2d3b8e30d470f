"""How long iterations took: merging them for the disk or with worker processes must not average a slow one away."""

from __future__ import annotations

import pytest
from fakes import CORES, Fake
from recording.worker_trainings import run_training
from sessions import Written, facts_of

from rlprof.ledger import profiler as module

MS = 1_000_000
PLANTED = [*[100 * MS] * 95, *[150 * MS] * 100, 5_000 * MS, 7 * MS, *[300 * MS] * 7]


def trained(folder, core, flush_every=10**9, **writer):
    fake = Fake(core, start=0)
    written = Written(folder, fake, **writer)
    for number, wall in enumerate(PLANTED):
        with fake.profiler.iteration():
            for operation in ("rollout", "update"):
                written.work(operation, wall // 2)
            fake.tick(wall - wall // 2 * 2)
        fake.tick(11 * MS)  # of no iteration
        if number % flush_every == 0:
            written.flush()
    return facts_of(written.end()).progress.iteration_ns


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("writer", [{}, {"most_gains": 40, "flush_every": 5}], ids=["single", "merged"])
def test_a_slow_and_a_quick_iteration_are_seen_whole_and_quantiles_are_right(tmp_path, core, writer):
    spread = trained(tmp_path, core, **writer)
    assert (spread.min_ns, spread.max_ns) == (7 * MS, 5_000 * MS)
    assert spread.mean_ns == pytest.approx(sum(PLANTED) / len(PLANTED))
    assert spread.p50_ns == pytest.approx(150 * MS, rel=0.011)
    assert spread.p95_ns == pytest.approx(150 * MS, rel=0.011)


def test_marks_that_the_core_had_no_room_for_lose_no_iteration(written):
    for number in range(9_000):  # more marks than a flush takes
        with written.fake.profiler.iteration():
            written.work("env_step", 40 * MS if number == 8_500 else 2 * MS)
    spread = facts_of(written.end()).progress.iteration_ns
    assert (spread.min_ns, spread.max_ns) == (2 * MS, 40 * MS)


def test_a_reset_forgets_the_iterations_before_it(written):
    for wall in (900, 20, 30):
        with written.fake.profiler.iteration():
            written.work("env_step", wall * MS)
        if wall == 900:
            written.fake.profiler.reset()
    spread = facts_of(written.end()).progress.iteration_ns
    assert (spread.min_ns, spread.max_ns) == (20 * MS, 30 * MS)


@pytest.mark.long
@pytest.mark.skipif(module._core is None, reason="only the C core shares")
def test_one_long_iteration_among_short_ones_with_workers_is_the_maximum(tmp_path):
    out, facts = run_training(
        tmp_path,
        """
recording = record("run")
envs = Envs(recording, [0.001] * 2)
durations = []
for number in range(60):
    with profiler.iteration():
        began = time.perf_counter_ns()
        envs.step()
        if number == 30:
            time.sleep(1.5)
        durations.append(time.perf_counter_ns() - began)
envs.close()
recording.stop()
print(min(durations), max(durations))
""",
    )
    shortest, longest = map(int, out.split()[-2:])
    spread = facts.progress.iteration_ns
    # The mark encloses what the program timed; the machine may take the core away between the two readings.
    assert longest <= spread.max_ns < longest + 500 * MS
    assert shortest <= spread.min_ns < longest / 2
