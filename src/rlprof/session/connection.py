"""Opens a session's database to be read, so that no file, whatever is in it, costs more than it may.

A session may come from anywhere. Its tables must be tables: a view or a virtual table could run a query without end.
SQLite itself bounds the size of a value and the work of its queries, and Ctrl-C ends a query at once.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from rlprof.errors import UnreadableError
from rlprof.session import schema
from rlprof.session.folder import DATABASE

MOST_BYTES = 2_000_000_000
"""Of the file and of its journal. A long training leaves some hundred MB."""
MOST_COPIED = 1 << 30
"""Bytes of a session that may still be written. A writer keeps it well below that."""
MOST_VALUE = 16_000_000
"""Bytes of a text or blob, except for blocks of the timeline."""
MOST_BLOCK = 500_000_000
MOST_ROWS = 1_000_000
"""Of a table that is read whole."""
MOST_WORK = 4_000_000_000
"""Instructions of SQLite's virtual machine, for all queries: about a minute."""
_STRIDE = 100_000
"""Instructions between two looks at signals and at the work that is left: about a millisecond."""


class Database:
    """A read-only connection, with all tables as of one moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._work_left = MOST_WORK
        self._counted: set[str] = set()
        for file in (path, *_journals(path)):
            if file.stat().st_size > MOST_BYTES:
                raise UnreadableError(f"{file} has more than {MOST_BYTES / 1e9:.1f} GB, which no session has")
        with self.explained():
            self._take(_connect(path))

    def execute(self, query: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        return self._connection.execute(query, values)

    def close(self) -> None:
        self._connection.close()

    def release(self) -> None:
        """Go on with a copy in memory of a file that may still be written: its writer waits for everybody who reads."""
        if self.path.stat().st_size > MOST_COPIED:
            return
        with self.explained():
            copy = _in_memory(self._connection)
            self._connection.close()
            self._take(copy)

    def limit_values(self, most: int) -> None:
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)

    def check_tables(self) -> None:
        """Raise UnreadableError unless every table that there is holds its own data."""
        with self.explained():
            found = {name: (kind, page) for kind, name, page in self.execute(_EVERYTHING)}
            for table in schema.TABLES:
                kind, page = found.get(table, ("table", 1))  # what is missing is said when it is read
                # A virtual table has no page of its own.
                if kind != "table" or not isinstance(page, int) or page <= 0:
                    raise self.damaged(f"{table} is not a table")
                if any(hidden for *_, hidden in self.execute(f"PRAGMA table_xinfo({table})")):
                    raise self.damaged(f"table {table} has columns that are computed")

    def check_rows(self, table: str) -> None:
        """Before a table is read whole."""
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
        """What SQLite refuses becomes one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            said = str(error)
            if said == "interrupted" and self._work_left >= 0:
                raise KeyboardInterrupt from error  # sqlite3 drops what a progress handler raises
            if said == "interrupted":
                raise self.damaged("reading it takes longer than any session does") from error
            if "too big" in said:
                raise self.damaged("a value in it is larger than any session's") from error
            if "file is not a database" in said:
                raise UnreadableError(
                    f"{self.path} is no session: it is not an SQLite file; give the session's folder or its session.db"
                ) from error
            raise UnreadableError(f"{self.path} cannot be read: {error}") from error
        except UnicodeDecodeError as error:
            raise self.damaged(f"text that is not UTF-8: {error.reason}") from error

    def _take(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.set_progress_handler(self._go_on, _STRIDE)
        self.limit_values(MOST_VALUE)

    def _go_on(self) -> bool:
        """Called by SQLite during a query; True ends that. Python delivers signals while this runs."""
        self._work_left -= _STRIDE
        return self._work_left < 0


_EVERYTHING = "SELECT type, name, rootpage FROM sqlite_master"


def _journals(path: Path) -> list[Path]:
    """What a killed run has left beside its file: without it, that may hold half a flush."""
    beside = (path.with_name(path.name + suffix) for suffix in ("-wal", "-journal"))
    return [file for file in beside if file.exists()]


def _connect(path: Path) -> sqlite3.Connection:
    """Read-only. On a disk that cannot be written, what was left by a killed run is read without its journal's lock."""
    if path.stat().st_size == 0:
        raise UnreadableError(f"{path} is empty: the run was stopped before its first flush")
    address = f"file:{quote(str(path.absolute()))}"
    connection = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=5, isolation_level=None)
    try:
        _distrust(connection)
        connection.execute("BEGIN")  # all tables as of one moment
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if "unable to open" not in str(error) and "readonly" not in str(error):
            raise
        if _journals(path):
            return _connect_to_copy(path)
        connection = sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True)
        try:
            _distrust(connection)
        except BaseException:
            connection.close()
            raise
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_to_copy(path: Path) -> sqlite3.Connection:
    """To a copy in memory of a session with a journal: reading the journal needs a file beside it, which cannot be made
    here."""
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
    """What the file's schema says may not call functions with side effects."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
