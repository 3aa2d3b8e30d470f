"""Requests to a running training: small files in a folder of its session, which its flushing thread reads.

The folder `requests` exists only while there are requests. Without any, the training looks for it once per second, and
that is all that a view costs. Each request is a file of its own, so that several views do not disturb each other.

Worker processes import this module, so it imports little.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rlprof.errors import RlprofError
from rlprof.session.folder import DATABASE, PRIVATE_FILE, PRIVATE_FOLDER
from rlprof.session.process import runs

if TYPE_CHECKING:
    import sqlite3

FOLDER = "requests"
SUFFIX = ".json"
MOST_BYTES = 1 << 20
"""Largest size of a request."""
MOST_PENDING = 100
"""Requests that are read at once. The others wait."""
MOST_TEXT = 5_000
"""Characters of a mark."""
_TRIES = 100


class CaptureRequest(msgspec.Struct, tag="capture", tag_field="request", forbid_unknown_fields=True, frozen=True):
    """A torch trace of the next steps."""

    step: str
    warmup_steps: int
    active_steps: int
    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False


class StacksRequest(msgspec.Struct, tag="stacks", tag_field="request", forbid_unknown_fields=True, frozen=True):
    """The Python stacks of all processes. Each process writes a file to the folder that has the name of the request.
    The requester makes that folder, and removes it together with the request."""


class MarkRequest(msgspec.Struct, tag="mark", tag_field="request", forbid_unknown_fields=True, frozen=True):
    """A remark about this instant, such as an alert."""

    kind: str
    text: str
    time: int
    """Unix time in ns."""


Request = CaptureRequest | StacksRequest | MarkRequest


def new_path(folder: Path) -> Path:
    """A path for a request that no other request has. Requests are read in the order of their names."""
    return folder / FOLDER / f"{time.time_ns():020}-{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"


def answers_of(request: Path) -> Path:
    """The folder for the answers to a request for stacks."""
    return request.with_suffix("")


def write_request(folder: Path, request: Request) -> Path:
    """Write a request to a session's folder, whole or not at all. Returns its file."""
    path = new_path(folder)
    for attempt in range(_TRIES):
        try:
            with suppress(FileExistsError):
                path.parent.mkdir(PRIVATE_FOLDER)
            with _opened(path.parent) as requests:
                if isinstance(request, StacksRequest):
                    os.mkdir(answers_of(path).name, PRIVATE_FOLDER, dir_fd=requests)
                _write(path.name, msgspec.json.encode(request), requests)
            break
        except (FileNotFoundError, FileExistsError):  # another requester has just removed the empty folder
            if attempt == _TRIES - 1 or not folder.is_dir():
                raise
    return path


def request_mark(folder: Path, kind: str, text: str) -> None:
    """Request that a running training notes this in its session. See `write_marks` for one that does not run."""
    from rlprof.session.info import readable  # noqa: PLC0415

    write_request(folder, MarkRequest(readable(kind), readable(text), time.time_ns()))


def withdraw(request: Path) -> None:
    """Remove a request with its answers, and the folder of requests if it is empty then."""
    with suppress(OSError), _opened(request.parent) as requests:
        with suppress(OSError):
            os.unlink(request.name, dir_fd=requests)
        name = answers_of(request).name
        with suppress(OSError), _opened(Path(name), requests) as answers:
            for file in os.listdir(answers):
                os.unlink(file, dir_fd=answers)
            os.rmdir(name, dir_fd=requests)
    with suppress(OSError):
        request.parent.rmdir()


def pending(folder: Path) -> list[Path]:
    """The requests to a session, oldest first."""
    try:
        with _opened(folder / FOLDER) as requests:
            names = os.listdir(requests)
    except OSError:
        return []
    return [folder / FOLDER / name for name in sorted(names) if name.endswith(SUFFIX)][:MOST_PENDING]


@contextmanager
def _opened(folder: Path, within: int | None = None) -> Iterator[int]:
    """A folder, for access to its files. Raises NotADirectoryError for a link, which could lead to any folder."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise NotADirectoryError(errno.ENOTDIR, f"{folder.name} in it is not a folder", str(folder)) from error
    try:
        yield opened
    finally:
        os.close(opened)


def _write(name: str, content: bytes, folder: int) -> None:
    """Write a new file completely or not at all."""
    aside = f"{name}.part"
    file = os.open(
        aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE, dir_fd=folder
    )
    try:
        with open(file, "wb") as opened:
            opened.write(content)
        os.replace(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside, dir_fd=folder)
        raise


def read_request(path: Path) -> Request:
    """Raises FileNotFoundError if the request was withdrawn, and ValueError if it is damaged or unknown."""
    found: Request = msgspec.json.decode(read_small(path, MOST_BYTES), type=Request)
    return found


def read_small(path: Path, most: int) -> bytes:
    """The content of a plain file. Raises ValueError if it is anything else, such as a pipe, which might block."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with open(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError(f"{path.name} is not a plain file")
        content = opened.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{path.name} has more than {most:,} bytes")
    return content


def write_marks(folder: Path) -> int:
    """Write the requested marks that a training has left to its session, which nobody writes to any more.

    Call it after the training has ended or was killed. Returns the number of marks. It is 0 while the training may
    still run, because then the training itself writes them. Raises RlprofError if the session cannot be written.
    """
    import sqlite3  # noqa: PLC0415
    from urllib.parse import quote  # noqa: PLC0415

    marks: list[tuple[Path, MarkRequest]] = []
    for path in pending(folder):
        with suppress(OSError, ValueError):
            request = read_request(path)
            if isinstance(request, MarkRequest):
                marks.append((path, request))
    if not marks:
        return 0
    try:
        address = f"file:{quote(str((folder / DATABASE).absolute()))}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=5, isolation_level=None)) as connection:
            if _may_be_written(connection):
                return 0
            _insert(connection, [request for _, request in marks])
    except (sqlite3.Error, OSError, ValueError, KeyError) as error:
        missing = "1 mark is" if len(marks) == 1 else f"{len(marks)} marks are"
        raise RlprofError(f"{folder} cannot be written, so {missing} missing in it: {error}") from error
    for path, _ in marks:
        withdraw(path)
    return len(marks)


def _insert(connection: sqlite3.Connection, marks: list[MarkRequest]) -> None:
    """A mark that is there already is not written again, as after a watcher that was killed before it removed the
    request."""
    info = _info(connection)
    # The ledger's clock at that time, as far as it is known from here.
    begin = info["origin"] - info["started"]
    rows = [(begin + mark.time, mark.kind[:MOST_TEXT], mark.text[:MOST_TEXT]) for mark in marks]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        "INSERT INTO mark (time, kind, text) SELECT ?, ?, ?"
        " WHERE NOT EXISTS (SELECT 1 FROM mark WHERE time = ? AND kind = ? AND text = ?)",
        [2 * row for row in rows],
    )
    connection.execute("COMMIT")


def _may_be_written(connection: sqlite3.Connection) -> bool:
    """True while the training may run. Processes of another machine cannot be seen."""
    if connection.execute("SELECT 1 FROM session WHERE key = 'end'").fetchone() is not None:
        return False
    import platform  # noqa: PLC0415

    info = _info(connection)
    return bool(info["host"] != platform.node() or runs(info["pid"], info.get("process", ""), info["started"]))


def _info(connection: sqlite3.Connection) -> dict[str, Any]:
    (text,) = connection.execute("SELECT value FROM session WHERE key = 'info'").fetchone()
    return msgspec.json.decode(text, type=dict[str, Any])
