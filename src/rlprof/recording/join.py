"""`join_session()`: how a worker process that was started from nothing takes part in a session."""

from __future__ import annotations

import os
from pathlib import Path

from rlprof.ledger.profiler import get_profiler
from rlprof.recording.environment import session_to_join
from rlprof.recording.worker import join, joined_folder
from rlprof.session.folder import find_database


def join_session(folder: str | os.PathLike[str] | None = None) -> bool:
    """Record this worker process to the session of the training that it works for.

    Call it before the first span of a process that `subprocess` or multiprocessing's "spawn" has started:

        import sys
        from rlprof import join_session, profile

        join_session(sys.argv[1])  # the training passes its recording.folder
        with profile("env_step"):
            ...

    A forked process, and every process below `rlprof run`, has joined already. There the call changes nothing.

    folder: the session's folder (default: the session of `rlprof run`).

    Returns True if this process records to the session. Returns False if the session has ended, if this process has a
    recording of its own, if there is no session to join, or on the Python core, which shares no clock with other
    processes. Raises UnreadableError if the folder is no session's.
    """
    given = folder or session_to_join(os.environ)
    if not given:
        return joined_folder() is not None
    session = find_database(Path(given)).parent.absolute()
    joined = joined_folder()
    if joined is not None:
        return joined.resolve() == session.resolve()
    return join(get_profiler(), session)
