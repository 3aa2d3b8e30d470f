"""Keeps long runs bounded: merges old iterations and samples in pairs. Sums are kept, and nothing is dropped."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

MOST_GAINS = 1_000_000
"""Maximum number of rows (iteration, node). At about 40 bytes each, a few tens of megabytes."""

SLICE = 50_000
"""Rows merged at once. Takes about a quarter of a second, between two flushes."""

MOST_SAMPLES = 20_000
RECENT = 1_000
"""Number of newest iterations that keep their own rows for as long as possible."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All statements of the block are written, or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def merge_iterations(connection: sqlite3.Connection, gains: int, after: int) -> tuple[int, int]:
    """Merge pairs of the oldest iterations after the one numbered `after`, in a slice that takes only a moment.

    Returns the number of remaining rows and where to continue. At the recent iterations it starts again from the
    oldest, each time with half the resolution.
    """
    rest = "FROM iteration WHERE last > ? ORDER BY last"
    (count,) = connection.execute("SELECT count(*) FROM iteration WHERE last > ?", (after,)).fetchone()
    total = _count(connection, "iteration")
    recent = min(RECENT, total // 4)
    at_once = max(2, SLICE * total // max(1, gains)) // 2 * 2
    merged = min(at_once, (count - recent) // 2 * 2)
    if merged < 2:
        return gains, -1
    (until,) = connection.execute(f"SELECT max(last) FROM (SELECT last {rest} LIMIT ?)", (after, merged)).fetchone()
    with transaction(connection):
        _merge_pairs(connection, after, until)
    return _count(connection, "gain"), until


def _count(connection: sqlite3.Connection, table: str) -> int:
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)


def _merge_pairs(connection: sqlite3.Connection, after: int, until: int) -> None:
    """Merge each two neighbours of this range. The result has the later one's number, as in the core."""
    script = f"""
    CREATE TEMP TABLE pair AS
      SELECT last AS old, max(last) OVER (PARTITION BY (place - 1) / 2) AS new
      FROM (SELECT last, row_number() OVER (ORDER BY last) AS place FROM iteration
            WHERE last > {int(after)} AND last <= {int(until)});
    CREATE UNIQUE INDEX temp.pair_old ON pair (old);
    CREATE TEMP TABLE merged_gain AS
      SELECT pair.new, node, sum(calls), sum(self), sum(ledger), sum(overlapped), sum(waited), sum(off_cpu)
      FROM gain JOIN pair ON pair.old = gain.iteration GROUP BY pair.new, node;
    CREATE TEMP TABLE merged_iteration AS
      SELECT min(start), max(end), min(first), new, sum(steps), sum(episodes), sum(wall)
      FROM iteration JOIN pair ON pair.old = iteration.last GROUP BY new;
    DELETE FROM gain WHERE iteration > {int(after)} AND iteration <= {int(until)};
    DELETE FROM iteration WHERE last > {int(after)} AND last <= {int(until)};
    INSERT INTO gain SELECT * FROM merged_gain;
    INSERT INTO iteration SELECT * FROM merged_iteration;
    DROP TABLE temp.merged_gain; DROP TABLE temp.merged_iteration; DROP TABLE temp.pair;
    """
    _run(connection, script)


def merge_samples(connection: sqlite3.Connection) -> int:
    """Merge each two neighbours: average the rates, keep the larger sizes. Returns the number of remaining samples."""

    def mean(name: str) -> str:
        return f"sum({name} * weight) / nullif(sum(CASE WHEN {name} IS NULL THEN NULL ELSE weight END), 0)"

    script = f"""
    CREATE TEMP TABLE merged_sample AS
      SELECT max(time), sum(weight), {mean("cpu")}, {mean("children_cpu")}, {mean("machine_cpu")}, {mean("held_up")},
        max(rss), max(allocated), max(children_rss), max(children), min(machine_available), {mean("device_busy")},
        max(device_memory), sum(cost)
      FROM (SELECT *, (row_number() OVER (ORDER BY time) - 1) / 2 AS pair FROM sample) GROUP BY pair;
    DELETE FROM sample;
    INSERT INTO sample SELECT * FROM merged_sample;
    DROP TABLE temp.merged_sample;
    """
    _run(connection, script)
    return _count(connection, "sample")


def _run(connection: sqlite3.Connection, script: str) -> None:
    # executescript() would commit the flush that this is part of.
    for statement in script.split(";"):
        if statement.strip():
            connection.execute(statement)
