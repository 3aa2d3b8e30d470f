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
    """The folder of the newest session that is running, else of the newest one. Raises RlprofError without any."""
    parent = sessions_folder() if parent is None else parent
    found = sessions_in(parent)
    if not found:
        raise RlprofError(f"There is no session in {parent}. Record one with `rlprof run train.py`, or set RLPROF_DIR.")
    return next((folder for folder in found[:MOST] if _runs(folder)), found[0])


def _runs(folder: Path) -> bool:
    try:
        with LiveSession(folder) as session:
            return ended(session) == RUNNING
    except (RlprofError, OSError):
        return False
