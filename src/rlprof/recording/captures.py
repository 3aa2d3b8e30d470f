"""What is captured of a recorded training beside its ledger: torch traces, and which functions take the time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from rlprof.capture.functions import Calls, FunctionCapture, Recorder, Sampler
from rlprof.capture.torch.capture import TorchCapture
from rlprof.ledger.catalogue import TRACE_EXPORT
from rlprof.recording.recording import Recording

FUNCTIONS = "functions"
"""What a session calls such a file."""

HOW: dict[str, Callable[[], Callable[[], Recorder]]] = {
    "cprofile": lambda: Calls,
    "sample": lambda: Sampler().recorder,
}
"""What makes a record of each phase."""


def capture_torch(recording: Recording, **settings: Any) -> TorchCapture:
    """With the settings of `TorchCapture`; it ends with the recording."""
    capture = TorchCapture(profiler=recording.profiler, **settings).begin()
    recording.before_end.append(capture.stop)
    return capture


def capture_functions(recording: Recording, how: str, phases: list[str]) -> None:
    """`how` is a key of HOW; of the whole run, or only inside these operations."""
    capture = FunctionCapture(recording.profiler, HOW[how](), phases)
    capture.start()

    def end() -> None:
        if recording.folder is not None:
            with recording.profiler.profile(TRACE_EXPORT):
                for path in capture.stop(recording.folder / "functions"):
                    recording.add_file(path, FUNCTIONS)

    recording.before_end.append(end)


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """What `rlprof capture` asks for."""

    step: str
    warmup_steps: int
    active_steps: int
    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False


def answer(recording: Recording, path: Path) -> None:
    """On the flushing thread; the driver begins at its next step."""
    try:
        request = msgspec.json.decode(path.read_bytes(), type=Request)
    finally:
        path.unlink()
    capture_torch(recording, wait_steps=0, **msgspec.structs.asdict(request))


def leave_summary(capture: TorchCapture, _folder: Path) -> None:
    """What the last trace says, on the standard error."""
    import sys  # noqa: PLC0415

    from rlprof.trace.analysis.summarize import summarize  # noqa: PLC0415 - only where it is asked for
    from rlprof.trace.analysis.summary import SCHEMA_VERSION, Summary  # noqa: PLC0415
    from rlprof.trace.read import read_trace  # noqa: PLC0415
    from rlprof.trace.render.text import to_text  # noqa: PLC0415

    if capture.files and sys.stderr is not None:
        sys.stderr.write(to_text(Summary(SCHEMA_VERSION, (summarize(read_trace(capture.files[-1])),))))


def begin(recording: Recording, asked: dict[str, Any]) -> None:
    """As the command line asked: `torch`, with the settings of a capture and `summary`; `cprofile` or `sample`, with
    operations."""
    torch = asked.get("torch")
    if torch is not None:
        summary = torch.pop("summary", False)
        capture = capture_torch(recording, **torch)
        if summary:
            recording.at_end.append(partial(leave_summary, capture))
    for how in HOW:
        if how in asked:
            capture_functions(recording, how, asked[how])
