"""Captures a torch trace of a training that is already running: a request in its session's folder, then the trace."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from rlprof.capture.captures import Request
from rlprof.capture.torch.capture import FAILED, TRACE
from rlprof.errors import RlprofError
from rlprof.session.folder import REQUEST
from rlprof.session.process import runs
from rlprof.session.reader import Session

POLL_SECONDS = 0.25


class RunningCapture:
    """One request for a trace. It raises RlprofError if the training does not run."""

    def __init__(self, folder: Path, request: Request) -> None:
        if not _is_running(folder):
            raise RlprofError(f"{folder} is not running any more. Choose a session whose training is under way.")
        self._folder, self._request = folder, request
        self._known, self._failed = set(_traces(folder)), len(_failures(folder))
        part = folder / f".{REQUEST}.{os.getpid()}"
        part.write_bytes(msgspec.json.encode(request))
        part.replace(folder / REQUEST)

    def wait(self) -> Path:
        """The path of the trace, once it is written. A request that was not read is withdrawn."""
        try:
            while True:
                running = _is_running(self._folder)  # read first: a trace is written before the training ends
                made = [path for path in _traces(self._folder) if path not in self._known]
                if made:
                    return made[0]
                if len(failures := _failures(self._folder)) > self._failed:
                    raise RlprofError(f"{self._folder} could not be captured: {failures[-1]}")
                if not running:
                    needed = self._request.warmup_steps + self._request.active_steps
                    raise RlprofError(
                        f"{self._folder} ended before it had made {needed} more steps ({self._request.step}), so"
                        " there is no trace. Request fewer steps with --active and --warmup."
                    )
                time.sleep(POLL_SECONDS)
        finally:
            (self._folder / REQUEST).unlink(missing_ok=True)


def _traces(folder: Path) -> list[Path]:
    with Session(folder) as session:
        return [folder / artifact.path for artifact in session.artifacts() if artifact.kind == TRACE]


def _failures(folder: Path) -> list[str]:
    with Session(folder) as session:
        return [mark.text for mark in session.marks() if mark.kind == FAILED]


def _is_running(folder: Path) -> bool:
    with Session(folder) as session:
        if session.end is not None:
            return False
        return runs(session.info.pid, session.info.process, session.info.started)
