"""Starts the captures of a recorded training: torch traces, and profiles of Python functions."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from rlprof.capture.functions import Calls, FunctionCapture, Recorder, Sampler
from rlprof.capture.torch.capture import TorchCapture
from rlprof.ledger.catalogue import TRACE_EXPORT
from rlprof.recording.recording import Recording
from rlprof.session.requests import CaptureRequest, read_request, withdraw

FUNCTIONS = "functions"
"""Kind of these files in the session's list of files."""

FUNCTION_PROFILERS: dict[str, Callable[[], Callable[[], Recorder]]] = {
    "cprofile": lambda: Calls,
    "sample": lambda: Sampler().recorder,
}
"""By the command-line option: what makes a recorder for each phase."""


def capture_torch(recording: Recording, **settings: Any) -> TorchCapture:
    """Start a torch capture with the settings of `TorchCapture`. It ends with the recording."""
    capture = TorchCapture(profiler=recording.profiler, **settings).begin()
    recording.before_end.append(capture.stop)
    return capture


def capture_functions(recording: Recording, how: str, phases: list[str]) -> None:
    """Profile Python functions: in the whole run, or only inside these operations. `how` is a key of
    FUNCTION_PROFILERS."""
    capture = FunctionCapture(recording.profiler, FUNCTION_PROFILERS[how](), phases)
    capture.start()

    def end() -> None:
        if recording.folder is not None:
            with recording.profiler.profile(TRACE_EXPORT):
                for path in capture.stop(recording.folder / "functions"):
                    recording.add_file(path, FUNCTIONS)

    recording.before_end.append(end)


Request = CaptureRequest
"""The torch capture that `rlprof capture` requests of a running training."""

PAUSE = 2
"""Flushes between two requested captures, so that each requester finds its own trace."""

PATIENCE = 30
"""Flushes for which a request waits for a capture that has not begun. That may be one of steps that never come."""


@dataclass
class _Requested:
    capture: TorchCapture
    waited: int = 0
    """Flushes before its first step."""
    paused: int = 0
    """Flushes after its last step."""

    def is_under_way(self) -> bool:
        """Called once per flush while another request waits."""
        if not self.capture.enabled:
            return False
        self.waited += not self.capture.started
        self.paused += self.capture.is_done
        return self.waited <= PATIENCE and self.paused <= PAUSE


_last: weakref.WeakKeyDictionary[Recording, _Requested] = weakref.WeakKeyDictionary()
"""The capture that was requested last."""


def capture_on_request(recording: Recording, path: Path) -> None:
    """Start the capture that a file requests, unless another one is under way: then the file stays.

    Runs on the flushing thread. The driver begins at its next step.
    """
    last = _last.get(recording)
    if last is not None and last.is_under_way():
        return
    try:
        request = read_request(path)
    except FileNotFoundError:
        return  # it was withdrawn
    withdraw(path)
    if path.exists():
        raise PermissionError(f"{path} cannot be removed")  # it would be captured again and again
    if isinstance(request, CaptureRequest):
        _last[recording] = _Requested(capture_torch(recording, wait_steps=0, **msgspec.structs.asdict(request)))


def start(recording: Recording, requested: dict[str, Any]) -> None:
    """Start what the command line requested: `torch` with the settings of a capture and `summary`; `cprofile` or
    `sample` with a list of operations."""
    torch = requested.get("torch")
    if torch is not None:
        summary = torch.pop("summary", False)
        capture = capture_torch(recording, **torch)
        if summary:
            recording.at_end.append(partial(_print_trace_summary, capture))
    for how in FUNCTION_PROFILERS:
        if how in requested:
            capture_functions(recording, how, requested[how])


def _print_trace_summary(capture: TorchCapture, _folder: Path) -> None:
    """Print the summary of the last trace to standard error."""
    from rlprof.trace.analysis.summarize import summarize  # noqa: PLC0415 - hardly ever needed
    from rlprof.trace.analysis.summary import SCHEMA_VERSION, Summary  # noqa: PLC0415
    from rlprof.trace.read import read_trace  # noqa: PLC0415
    from rlprof.trace.render.text import to_text  # noqa: PLC0415

    if capture.files and sys.stderr is not None:
        sys.stderr.write(to_text(Summary(SCHEMA_VERSION, (summarize(read_trace(capture.files[-1])),))))
