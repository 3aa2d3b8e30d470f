"""Where sessions are, and which one is meant."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from rlprof.errors import UnreadableError

DATABASE = "session.db"
REQUEST = "capture-request.json"
"""What somebody asks a running training to capture."""
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""Permissions: what a training does is its owner's business."""
_STAMP = re.compile(r"_\d{8}-\d{6}(-\d+)?$")


def sessions_folder() -> Path:
    """Where new sessions go unless told: RLPROF_DIR, or `rlprof-runs` here."""
    return Path(os.environ.get("RLPROF_DIR") or "rlprof-runs")


def new_folder(name: str, parent: Path) -> Path:
    """Make the folder of a session that begins now: NAME_YYYYMMDD-HHMMSS, numbered when there is one already."""
    readable = re.sub(r"[^\w.+-]+", "-", name).strip("-.")
    # File systems count bytes, and half a character is none.
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
    raise FileExistsError(f"a thousand sessions named {stem} in {parent}")


def make_private(path: Path) -> None:
    """Let only the owner read and write a file, which is made if there is none, whatever the umask."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with suppress(OSError):  # not every file system has permissions
            os.fchmod(file, PRIVATE_FILE)
    finally:
        os.close(file)


def write_private(path: Path, content: bytes) -> None:
    """Write a file of a session: all of it, or nothing. What was there before stays if it cannot be written."""
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
    """The session.db of a folder, a file, or `last`, the newest session in the sessions' folder."""
    if str(given) == "last" and not Path(given).exists():
        return _newest(sessions_folder())
    path = Path(given)
    try:
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
    try:
        found = [folder for folder in parent.iterdir() if _holds_session(folder)]
    except OSError:
        found = []
    if not found:
        raise UnreadableError(f"there is no session in {parent}; record one, or set RLPROF_DIR to where they are")

    def begun(folder: Path) -> tuple[str, int, float]:
        stamp = _STAMP.search(folder.name)
        # Numbered folders of one second count up; a renamed folder has its time only in the file system.
        stamped = stamp[0][1:16] if stamp else time.strftime("%Y%m%d-%H%M%S", time.localtime(_modified(folder)))
        return stamped, int(stamp[1][1:]) if stamp and stamp[1] else 1, _modified(folder)

    return max(found, key=begun) / DATABASE


def _holds_session(folder: Path) -> bool:
    try:
        return (folder / DATABASE).is_file()
    except OSError:  # somebody else's
        return False


def _modified(folder: Path) -> float:
    return (folder / DATABASE).stat().st_mtime
