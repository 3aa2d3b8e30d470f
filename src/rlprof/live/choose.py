"""Finds the session that a live view shows if none is given."""

from __future__ import annotations

from pathlib import Path

from rlprof.analysis.facts import RUNNING, ended
from rlprof.errors import RlprofError
from rlprof.session.folder import sessions_folder, sessions_in
from rlprof.session.live import LiveSession

MOST = 50
"""Newest sessions that are looked at. Opening one takes about a millisecond."""


def running_session(parent: Path | None = None) -> Path:
    """The folder of the newest session that is running, else of the newest one that can be read.

    Raises RlprofError if there is no session. If none can be read, the newest one is returned: reading it fails with
    the reason.
    """
    parent = sessions_folder() if parent is None else parent
    found = sessions_in(parent)
    if not found:
        raise RlprofError(f"There is no session in {parent}. Record one with `rlprof run train.py`, or set RLPROF_DIR.")
    readable: Path | None = None
    for folder in found[:MOST]:
        state = _state(folder)
        if state == RUNNING:
            return folder
        if state is not None and readable is None:
            readable = folder
    return readable or found[0]


def _state(folder: Path) -> str | None:
    """How a session ended, or whether it still runs. None if it cannot be read."""
    try:
        with LiveSession(folder) as session:
            return ended(session)
    except (RlprofError, OSError):
        return None
