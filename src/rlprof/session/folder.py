"""Finds sessions, and makes their folders."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from rlprof.errors import UnreadableError

DATABASE = "session.db"
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""Permissions. Only the owner can read a session."""
_STAMP = re.compile(r"_\d{8}-\d{6}(-\d+)?$")


def sessions_folder() -> Path:
    """Default folder for new sessions: $RLPROF_DIR, else ./rlprof-runs."""
    return Path(os.environ.get("RLPROF_DIR") or "rlprof-runs")


def new_folder(name: str, parent: Path) -> Path:
    """Make the folder of a session that begins now: NAME_YYYYMMDD-HHMMSS, with a number if it exists already."""
    readable = re.sub(r"[^\w.+-]+", "-", name).strip("-.")
    # File systems limit the number of bytes. Drop a character that is cut in half.
    readable = readable.encode("utf-8", "replace")[:150].decode("utf-8", "ignore") or "training"
    stem = f"{readable}_{time.strftime('%Y%m%d-%H%M%S')}"
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, 1000):
        folder = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(PRIVATE_FOLDER)
        except FileExistsError:
            continue
        with suppress(OSError):  # not every file system has permissions
            folder.chmod(PRIVATE_FOLDER)
        return folder
    raise FileExistsError(f"there are already a thousand sessions named {stem} in {parent}")


def make_private(path: Path) -> None:
    """Let only the owner read and write a file, whatever the umask. Creates the file if it does not exist."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with suppress(OSError):  # not every file system has permissions
            os.fchmod(file, PRIVATE_FILE)
    finally:
        os.close(file)


def write_private(path: Path, content: bytes) -> None:
    """Write a file of a session completely or not at all. If it fails, the old file stays."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        make_private(aside)
        aside.write_bytes(content)
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise


def find_database(given: str | os.PathLike[str]) -> Path:
    """The session.db for a folder, a file, or `last` (the newest session in the sessions' folder)."""
    if str(given) == "last" and not Path(given).exists():
        return _newest(sessions_folder())
    path = Path(given)
    try:
        if path.name == str(given) and not path.exists() and (sessions_folder() / path).exists():
            path = sessions_folder() / path  # a name that `rlprof list` shows
        if path.is_dir():
            if not (path / DATABASE).exists():
                raise UnreadableError(f"{path} is a folder without a {DATABASE}; give a session's folder or `last`")
            return path / DATABASE
        if not path.exists():
            raise UnreadableError(
                f"{path} does not exist; give a session's folder or {DATABASE}, a report's JSON or `last`"
            )
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror or error}") from error
    return path


def _newest(parent: Path) -> Path:
    found = sessions_in(parent)
    if not found:
        raise UnreadableError(
            f"there is no session in {parent}; record one, or set RLPROF_DIR to the folder of your sessions"
        )
    return found[0] / DATABASE


def sessions_in(parent: Path) -> list[Path]:
    """The folders of the sessions in a folder, newest first. Empty if the folder cannot be read."""
    try:
        found = [folder for folder in parent.iterdir() if _holds_session(folder)]
    except OSError:
        return []

    def begun(folder: Path) -> tuple[str, int, float]:
        stamp = _STAMP.search(folder.name)
        # Folders of the same second are numbered. A renamed folder has its time only in the file system.
        stamped = stamp[0][1:16] if stamp else time.strftime("%Y%m%d-%H%M%S", time.localtime(_modified(folder)))
        return stamped, int(stamp[1][1:]) if stamp and stamp[1] else 1, _modified(folder)

    return sorted(found, key=begun, reverse=True)


def _holds_session(folder: Path) -> bool:
    try:
        return (folder / DATABASE).is_file()
    except OSError:  # another user's folder
        return False


def _modified(folder: Path) -> float:
    return (folder / DATABASE).stat().st_mtime
