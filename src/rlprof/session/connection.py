"""Opens a session's database for reading, with limits on what any file can cost.

A session may come from anywhere. Its tables must be tables, because a view or a virtual table could run a query
forever. SQLite limits the size of a value and the work of its queries, and Ctrl-C ends a query at once.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from rlprof.errors import UnreadableError
from rlprof.session import schema
from rlprof.session.folder import DATABASE

MOST_BYTES = 2_000_000_000
"""Limit for the file and for its journal. A long training leaves some hundred MB."""
MOST_COPIED = 1 << 30
"""Limit in bytes for copying a running session to memory. A writer stays well below it."""
MOST_VALUE = 16_000_000
"""Limit in bytes for a text or blob, except for blocks of the timeline."""
MOST_BLOCK = 500_000_000
MOST_ROWS = 1_000_000
"""Limit for a table that is read completely."""
MOST_WORK = 4_000_000_000
"""Limit in instructions of SQLite's virtual machine, for all queries together. About a minute."""
_STRIDE = 100_000
"""Instructions between two checks for signals and for remaining work. About a millisecond."""


class Database:
    """A read-only connection, with all tables as of one moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._work_left = MOST_WORK
        self._counted: set[str] = set()
        _check_kinds(path)
        for file in (path, *_journals(path)):
            if file.stat().st_size > MOST_BYTES:
                raise UnreadableError(f"{file} has more than {MOST_BYTES / 1e9:.1f} GB, more than any session")
        with self.explained():
            self._take(_connect(path))

    def execute(self, query: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        return self._connection.execute(query, values)

    def close(self) -> None:
        self._connection.close()

    def release(self) -> None:
        """Continue with a copy in memory if the file may still be written, because its writer waits for all readers."""
        if self.path.stat().st_size > MOST_COPIED:
            return
        with self.explained():
            copy = _in_memory(self._connection)
            self._connection.close()
            self._take(copy)

    def limit_values(self, most: int) -> None:
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)

    def check_tables(self) -> None:
        """Raise UnreadableError if a table does not hold its own data."""
        with self.explained():
            found = {name: (kind, page) for kind, name, page in self.execute(_EVERYTHING)}
            for table in schema.TABLES:
                kind, page = found.get(table, ("table", 1))  # a missing table is reported when it is read
                # A virtual table has no page of its own.
                if kind != "table" or not isinstance(page, int) or page <= 0:
                    raise self.damaged(f"{table} is not a table")
                if any(hidden for *_, hidden in self.execute(f"PRAGMA table_xinfo({table})")):
                    raise self.damaged(f"table {table} has computed columns")

    def check_rows(self, table: str) -> None:
        """Check the number of rows. Call it before reading a table completely."""
        if table in self._counted:
            return
        with self.explained():
            if self.execute(f"SELECT 1 FROM {table} LIMIT 1 OFFSET {MOST_ROWS}").fetchone() is not None:
                raise self.damaged(f"table {table} has more than {MOST_ROWS:,} rows")
        self._counted.add(table)

    def damaged(self, what: str) -> UnreadableError:
        return UnreadableError(f"{self.path} is damaged: {what}")

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of SQLite into one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            message = str(error)
            if message == "interrupted" and self._work_left >= 0:
                raise KeyboardInterrupt from error  # sqlite3 discards exceptions of a progress handler
            if message == "interrupted":
                raise self.damaged("reading it takes longer than reading any session") from error
            if "too big" in message:
                raise self.damaged("it holds a value that is larger than in any session") from error
            if "file is not a database" in message and _is_json(self.path):
                raise UnreadableError(
                    f"{self.path} is a report's JSON. This command needs the session that the report was made from; "
                    "give the session's folder or its session.db"
                ) from error
            if "file is not a database" in message:
                raise UnreadableError(
                    f"{self.path} is not an SQLite file, so no session; give the session's folder or its session.db"
                ) from error
            raise UnreadableError(f"{self.path} cannot be read: {error}") from error
        except UnicodeDecodeError as error:
            raise self.damaged(f"it holds text that is not UTF-8: {error.reason}") from error

    def _take(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.set_progress_handler(self._go_on, _STRIDE)
        self.limit_values(MOST_VALUE)

    def _go_on(self) -> bool:
        """Called by SQLite during a query. True ends the query. Python delivers signals while this runs."""
        self._work_left -= _STRIDE
        return self._work_left < 0


_EVERYTHING = "SELECT type, name, rootpage FROM sqlite_master"


def _is_json(path: Path) -> bool:
    """True if a file begins as a JSON report does, compressed or not."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            return bool(file.read(64).lstrip().startswith(b"{"))
    except (OSError, EOFError, zlib.error):
        return False


def _check_kinds(path: Path) -> None:
    """SQLite would wait for the writer of a pipe for ever, and a link leads to somebody else's file."""
    for file in (path, *_beside(path, "-wal", "-shm", "-journal")):
        with suppress(FileNotFoundError):
            mode = os.lstat(file).st_mode
            if not stat.S_ISREG(mode):
                kind = "a link" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
                raise UnreadableError(f"{file} is {kind}, not a plain file, so it is no part of a session")


def _beside(path: Path, *endings: str) -> list[Path]:
    return [path.with_name(path.name + ending) for ending in endings]


def _journals(path: Path) -> list[Path]:
    """Journals of a killed run, without which its file may hold half a flush."""
    return [file for file in _beside(path, "-wal", "-journal") if file.exists()]


def _connect(path: Path) -> sqlite3.Connection:
    """Connect read-only. On a read-only disk, a session with a journal is copied, and others are read unlocked."""
    if path.stat().st_size == 0:
        raise UnreadableError(f"{path} is empty: the run was stopped before its first flush")
    address = f"file:{quote(str(path.absolute()))}"
    try:
        return _opened(f"{address}?mode=ro")
    except sqlite3.OperationalError as error:
        if "unable to open" not in str(error) and "readonly" not in str(error):
            raise
    return _connect_to_copy(path) if _journals(path) else _opened(f"{address}?mode=ro&immutable=1")


def _opened(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=5, isolation_level=None)
    try:
        _distrust(connection)
        connection.execute("BEGIN")  # all tables as of one moment
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_to_copy(path: Path) -> sqlite3.Connection:
    """Connect to a copy in memory of a session with a journal. Reading a journal needs to write beside it, which is not
    possible here."""
    with TemporaryDirectory(prefix="rlprof-") as folder:
        for file in (path, *_journals(path)):
            shutil.copyfile(file, Path(folder) / (DATABASE + file.name.removeprefix(path.name)))
        source = sqlite3.connect(Path(folder) / DATABASE)
        try:
            return _in_memory(source)
        finally:
            source.close()


def _in_memory(source: sqlite3.Connection) -> sqlite3.Connection:
    copy = sqlite3.connect(":memory:", isolation_level=None)
    try:
        # In steps, between which Python delivers signals.
        source.backup(copy, pages=10_000, progress=lambda *_: None)
        _distrust(copy)
    except BaseException:
        copy.close()
        raise
    return copy


def _distrust(connection: sqlite3.Connection) -> None:
    """Do not let the file's schema call functions with side effects."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
