"""Long runs stay bounded, and their sums are kept."""

from __future__ import annotations

import itertools
import time

import pytest
from sessions import Written, facts_of, sample

from rlprof.session import merge, writer
from rlprof.session.reader import Session


def train(written: Written, iterations: int, flush_every: int = 50) -> None:
    for i in range(1, iterations + 1):
        with written.fake.profiler.iteration():
            written.work("env_step", 10 + i % 7)
            written.work("update", 5)
            written.fake.profiler.add_steps(2)
        written.fake.tick(3)  # between iterations: in no row
        if i % flush_every == 0:
            written.flush()


def test_old_iterations_are_merged_and_their_sums_kept(tmp_path):
    written = Written(tmp_path, most_gains=300)
    train(written, 1_000)
    path = written.end()
    with Session(path) as session:
        rows = session.iterations()
        gains = session.gains(rows[0], rows[-1])
    assert sum(len(row) for row in [gains]) <= 3
    assert [row.first for row in rows] == [0, *(row.last + 1 for row in rows[:-1])]
    assert rows[-1].last == 999
    assert len(rows) < 150
    assert sum(row.steps for row in rows) == 2_000
    worked = sum(10 + i % 7 for i in range(1, 1_001))
    assert sum(row.wall_ns for row in rows) == worked + 5_000
    assert sum(gain.ledger_ns for gain in gains) == worked + 5_000
    assert sum(gain.calls for gain in gains) == 2_000
    facts = facts_of(path)  # every point still sums to its wall time
    assert sum(facts.series.ledger_ns["env_step"]) == worked


def test_the_newest_iterations_keep_their_own_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(merge, "RECENT", 40)
    written = Written(tmp_path, most_gains=300)
    train(written, 1_000)
    with Session(written.end()) as session:
        rows = session.iterations()
    assert all(row.first == row.last for row in rows[-40:])
    assert rows[0].last > rows[0].first


def test_the_file_stays_bounded_however_many_iterations_there_are(tmp_path):
    sizes = []
    for iterations in (2_000, 8_000):
        written = Written(tmp_path / str(iterations), most_gains=1_000)
        train(written, iterations, flush_every=500)
        sizes.append(written.end().stat().st_size)
    assert sizes[1] < 1.3 * sizes[0]


def test_merging_does_not_depend_on_how_fast_the_machine_is(tmp_path, monkeypatch):
    """With a clock that jumps an hour at each reading, as on a busy machine, the rows are the same."""

    def rows(folder):
        written = Written(folder, most_gains=300)
        train(written, 1_000)
        with Session(written.end()) as session:
            return [(row.first, row.last) for row in session.iterations()]

    usual = rows(tmp_path / "usual")
    jumping = itertools.count(0, 3_600)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(jumping)))
    assert rows(tmp_path / "slow") == usual


def test_a_flush_merges_a_bounded_number_of_rows(tmp_path, monkeypatch):
    merged = []

    def counting(connection, gains, after):
        left, until = merge.merge_iterations(connection, gains, after)
        merged.append(gains - left)
        return left, until

    monkeypatch.setattr(writer, "merge_iterations", counting)
    monkeypatch.setattr(merge, "SLICE", 100)
    monkeypatch.setattr(writer, "SLICE", 100)
    written = Written(tmp_path, most_gains=300)
    train(written, 1_000, flush_every=1_000)  # ten times as many rows as one flush may merge
    assert 0 < sum(merged) < 400
    assert max(merged) <= 100
    written.end()


def test_samples_are_merged_in_pairs(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MOST_SAMPLES", 3)
    written = Written(tmp_path)
    written.work("env_step", 10)
    written.samples = [
        sample(1, cpu=None, rss=10), sample(2, cpu=40.0, rss=30), sample(3, cpu=10.0), sample(4, cpu=20.0),
    ]  # fmt: skip
    written.flush()
    with Session(written.end()) as session:
        first, second = session.samples()
    assert (first.time, first.weight, first.cpu, first.rss) == (2, 2 * 10**9, 40.0, 30)
    assert (second.time, second.weight, second.cpu, second.cost) == (4, 2 * 10**9, 15.0, 200_000)


def test_the_timeline_is_a_window_on_the_last_spans(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MOST_TIMELINE_BYTES", 2_000)
    written = Written(tmp_path)
    written.fake.profiler.ledger.timeline(1_000)
    for _ in range(100):
        for wall in range(1, 21):
            written.work("env_step", wall)
        written.flush()
    with Session(written.end()) as session:
        events = sum(len(block) // 24 for block in session.timeline())
        assert 0 < events < 2_000
        assert events + session.timeline_lost() == 2_000
    assert facts_of(written.path).operation("env_step").calls == 2_000


@pytest.mark.parametrize("nodes", [1, 400])
def test_merging_ends_even_when_a_single_iteration_has_too_many_rows(nodes, tmp_path):
    written = Written(tmp_path, most_gains=100)
    for _ in range(3):
        with written.fake.profiler.iteration():
            for place in range(nodes):
                written.work(f"operation {place}", 1)
        written.flush()
    with Session(written.end()) as session:
        assert sum(row.last - row.first + 1 for row in session.iterations()) == 3
