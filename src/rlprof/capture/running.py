"""Captures a torch trace of a training that is already running: a request in its session's folder, then the trace."""

from __future__ import annotations

import time
from pathlib import Path

from rlprof.capture.captures import Request
from rlprof.capture.torch.capture import FAILED, TRACE
from rlprof.errors import RlprofError
from rlprof.session.live import LiveSession
from rlprof.session.process import runs
from rlprof.session.requests import withdraw, write_request

POLL_SECONDS = 0.25


class RunningCapture:
    """One request for a trace. It raises RlprofError if the training does not run."""

    def __init__(self, folder: Path, request: Request) -> None:
        if not _is_running(folder):
            raise RlprofError(f"{folder} is not running any more. Choose a session whose training is under way.")
        self._folder, self._request = folder, request
        self._known, self._failed = set(_traces(folder)), len(_failures(folder))
        self._file = write_request(folder, request)

    def wait(self) -> Path:
        """The path of the trace, once it is written. A request that was not read is withdrawn."""
        try:
            while True:
                is_read = not self._file.exists()
                running = _is_running(self._folder)  # read first: a trace is written before the training ends
                traces, failures = _traces(self._folder), _failures(self._folder)
                if not is_read:  # these were requested by others
                    self._known, self._failed = set(traces), len(failures)
                made = [path for path in traces if path not in self._known]
                if made:
                    return made[0]
                if len(failures) > self._failed:
                    raise RlprofError(f"{self._folder} could not be captured: {failures[-1]}")
                if not running:
                    needed = self._request.warmup_steps + self._request.active_steps
                    raise RlprofError(
                        f"{self._folder} ended before it had made {needed} more steps ({self._request.step}), so"
                        " there is no trace. Request fewer steps with --active and --warmup."
                    )
                time.sleep(POLL_SECONDS)
        finally:
            withdraw(self._file)


def _traces(folder: Path) -> list[Path]:
    with LiveSession(folder) as session:
        return [folder / artifact.path for artifact in session.artifacts() if artifact.kind == TRACE]


def _failures(folder: Path) -> list[str]:
    with LiveSession(folder) as session:
        return [mark.text for mark in session.marks() if mark.kind == FAILED]


def _is_running(folder: Path) -> bool:
    with LiveSession(folder) as session:
        if session.end is not None:
            return False
        return runs(session.info.pid, session.info.process, session.info.started)
