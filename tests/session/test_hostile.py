"""Malicious sessions are refused in one sentence, with bounded work and memory."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import sys
import threading
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from refusals import change, refused
from sessions import Written, rlprof, sample

from rlprof.analysis import load
from rlprof.analysis.load import load_facts
from rlprof.errors import UnreadableError
from rlprof.export.spans import Spans
from rlprof.session import connection, reader, schema
from rlprof.session.reader import Session

ENDLESS = "WITH RECURSIVE endless(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM endless)"


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    written = Written(tmp_path_factory.mktemp("run"))
    written.fake.profiler.enable(64)
    for _ in range(5):
        with written.fake.profiler.iteration():
            written.work("env_step", 1_000)
            written.work("update", 700)
    written.samples = [sample(1), sample(2)]
    return written.end()


@pytest.fixture
def session(original, tmp_path) -> Path:
    return Path(shutil.copy(original, tmp_path / "session.db"))


def read_timeline(path: Path) -> list[bytes]:
    with Session(path) as opened:
        return list(opened.timeline())


def test_the_schema_knows_all_of_its_tables(session):
    with closing(sqlite3.connect(session)) as database:
        assert {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")} == set(
            schema.TABLES
        )


@pytest.mark.parametrize("table", schema.TABLES)
def test_a_view_in_the_place_of_a_table_is_refused(table, session):
    with closing(sqlite3.connect(session)) as database:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    endless = f"{ENDLESS} SELECT {', '.join(f'n AS {name}' for name in columns)} FROM endless"
    change(session, f"DROP TABLE {table}", f"CREATE VIEW {table} AS {endless}")
    refused(session, f"{table} is not a table")


@pytest.mark.long
def test_the_command_line_answers_such_a_view_at_once(session):
    change(
        session,
        "DROP TABLE mark",
        f"CREATE VIEW mark AS {ENDLESS} SELECT n AS time, 'a' AS kind, 'b' AS text FROM endless",
    )
    for words in (["report"], ["analyze"], ["whatif"], ["export", "--to", "csv"]):
        done = rlprof(words[0], session, *words[1:], code=2)
        assert done.stdout == ""
        assert done.stderr == f"rlprof: {session} is damaged: mark is not a table\n"


def test_a_virtual_table_is_refused(session):
    try:
        change(session, "DROP TABLE mark", "CREATE VIRTUAL TABLE mark USING fts5(time, kind, text)")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no virtual tables")
    refused(session, "mark is not a table")


def test_a_computed_column_is_refused(session):
    change(
        session,
        "DROP TABLE mark",
        "CREATE TABLE mark (time INTEGER, kind TEXT, text TEXT AS (hex(zeroblob(500000000))))",
    )
    refused(session, "table mark has computed columns")


def test_ctrl_c_ends_a_query(session):
    with Session(session) as opened:
        main = threading.main_thread().ident
        assert main is not None
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
        try:
            with pytest.raises(KeyboardInterrupt):
                with opened._explained():
                    timer.start()
                    opened._database.execute(f"{ENDLESS} SELECT sum(n) FROM endless").fetchall()
        finally:
            timer.join()
            signal.signal(signal.SIGINT, before)
        assert opened.iterations(), "it can be read afterwards"


def test_the_work_of_all_queries_is_bounded(session, monkeypatch):
    monkeypatch.setattr(connection, "MOST_WORK", 3 * connection._STRIDE)
    with Session(session) as opened:
        with pytest.raises(UnreadableError, match="reading it takes longer than reading any session"):
            with opened._explained():
                opened._database.execute(f"{ENDLESS} SELECT sum(n) FROM endless").fetchall()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="sqlite3 of this Python cannot set limits")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE operation SET name = ?",
        "UPDATE lane SET name = ?",
        "UPDATE session SET value = ? WHERE key = 'info'",
        "UPDATE node SET histogram = ?",
        "INSERT INTO artifact VALUES (?, 'x', 1)",
    ],
)
def test_an_endless_value_is_refused(statement, session):
    change(session, statement.replace("UPDATE operation", "UPDATE OR IGNORE operation"), values=("x" * 17_000_000,))
    refused(session, "it holds a value that is larger than in any session")


def test_endless_rows_are_refused(session, monkeypatch):
    monkeypatch.setattr(connection, "MOST_ROWS", 1000)
    for table, row in (
        ("iteration", "n, n + 1, n, n, 1, 1, 1"),
        ("sample", "n, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1"),
        ("artifact", "n, 'x', n"),
    ):
        copy = Path(shutil.copy(session, session.with_name(f"{table}.db")))
        numbers = f"{ENDLESS} SELECT {row} FROM endless WHERE n > 100 LIMIT 1001"
        change(copy, f"INSERT INTO {table} {numbers}")
        refused(copy, f"table {table} has more than 1,000 rows")


def block(size: int) -> bytes:
    """A number of zero bytes, packed without allocating all of them."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


@pytest.mark.parametrize(
    ("events", "because"),
    [
        (10, "unpacks to more than its 10 events"),
        (10_000_000_000, "its timeline has 10,000,000,0"),
        (-5, "does not declare its number of events|table timeline"),
        ("many", "does not declare its number of events|table timeline|cannot be read"),
        (None, "does not declare its number of events|cannot be read"),
        (128 << 20, "its timeline has 134,217,7"),
    ],
)
def test_a_block_of_the_timeline_that_unpacks_endlessly_is_refused(events, because, session):
    bomb = block(64 << 20)
    assert len(bomb) < 100_000
    change(session, "DROP TABLE timeline", "CREATE TABLE timeline (id INTEGER PRIMARY KEY, events, lost, block)")
    change(session, "INSERT INTO timeline VALUES (9, ?, 0, ?)", values=(events, bomb))
    if events is None:
        because = "does not declare its number of events"
    refused(session, because, read_timeline)


def test_a_block_is_never_unpacked_beyond_its_declared_events(session, monkeypatch):
    """Counts the bytes that zlib returns, which the block's declaration limits."""
    limits, real = [], zlib.decompressobj

    class Counting:
        def __init__(self) -> None:
            self._real = real()
            self.eof = False

        def decompress(self, data: bytes, most: int) -> bytes:
            limits.append(most)
            return self._real.decompress(data, most)

    monkeypatch.setattr(reader.zlib, "decompressobj", Counting)
    change(session, "UPDATE timeline SET events = 7, block = ?", values=(block(64 << 20),))
    refused(session, "unpacks to more than its 7 events", read_timeline)
    assert limits == [7 * 24 + 1]


def test_the_events_of_all_blocks_are_counted_first(session, monkeypatch):
    monkeypatch.setattr(reader, "MOST_EVENTS", 5)
    refused(session, "its timeline has 10 events, and at most 5 are read", read_timeline)


def test_a_timeline_is_read_as_before(session):
    with Session(session) as opened:
        assert len(list(Spans(opened))) == 10
        assert opened.iterations(), "other values are still read afterwards"


def test_a_file_that_is_too_large_is_refused_before_it_is_opened(session, tmp_path):
    with session.open("r+b") as file:
        file.truncate(connection.MOST_BYTES + 1)  # a hole, which takes no room on the disk
    refused(session, r"has more than 2\.0 GB, more than any session")
    report = tmp_path / "report.json"
    with report.open("wb") as file:
        file.write(b"{")
        file.truncate(load.MOST_BYTES + 1)
    refused(report, r"is larger than 1\.0 GB, so it is not an rlprof report")


def test_a_name_of_megabytes_is_recorded_short(tmp_path):
    written = Written(tmp_path / "run")
    written.work("x" * 20_000_000, 1_000)
    path = written.end()
    facts = load_facts(path)
    assert {len(operation.operation) for operation in facts.operations} == {100_000}


def test_a_copy_of_a_killed_session_is_checked_too(session, monkeypatch):
    """On a read-only disk, where the journal is read in a copy."""
    view = f"CREATE VIEW mark AS {ENDLESS} SELECT n FROM endless"
    change(session, "DROP TABLE mark", view)
    session.with_name("session.db-wal").touch()
    monkeypatch.setattr(connection, "_connect", connection._connect_to_copy)
    refused(session, "mark is not a table")
