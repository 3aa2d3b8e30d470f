"""`TorchCapture`: records chosen steps of a training in a torch trace that names its phases."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from typing import Any

from rlprof.capture.torch.annotations import SpanAnnotations
from rlprof.capture.torch.export import SUFFIX, export, file_name
from rlprof.capture.torch.quiet import quiet_kineto
from rlprof.capture.torch.schedule import (
    ACTIVE,
    DONE,
    EPOCH,
    MARK,
    STEPS,
    WAIT,
    WARMUP,
    Schedule,
    announced,
    steps_named,
    stopped_early,
)  # fmt: skip
from rlprof.capture.torch.size import StepSizes, begins_next, bytes_of_steps
from rlprof.capture.torch.step_finder import StepFinder
from rlprof.ledger.catalogue import TRACE_EXPORT
from rlprof.ledger.profiler import Profiler, get_profiler
from rlprof.session.folder import sessions_folder
from rlprof.trace.read import read_trace

TRACE, FAILED = "torch_trace", "torch_trace_failed"
"""Kind of a trace in the session's list of files, and of a mark about a failed capture."""
LARGE = 300_000_000
"""Bytes of JSON from which a browser has trouble with a trace."""

Log = Callable[[str], None]


def _log(text: str) -> None:
    print(f"rlprof: {text}", file=sys.stderr, flush=True)  # noqa: T201 - standard output belongs to the program


class TorchCapture:
    """Skips `wait_steps`, warms up for `warmup_steps`, and then captures `active_steps` steps with torch.profiler.

    A step is an `epoch` (one pass over a rollout's data), an `iteration`, an `env_step` or a `mark`. The profiler's
    probes, marks and spans show where steps begin, from `begin()` or the begin of the block. `step()` makes a `mark`.
    A failure warns once, and the training goes on.
    """

    def __init__(
        self,
        *,
        enabled: bool = True,
        wait_steps: int = 1,
        warmup_steps: int = 1,
        active_steps: int = 3,
        repeat: int = 1,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        step: str = EPOCH,
        dir: str | os.PathLike[str] | None = None,
        profiler: Profiler | None = None,
        planned_steps: int | None = None,
    ) -> None:
        if step not in STEPS:
            raise ValueError(f"step must be one of {', '.join(STEPS)}, not {step!r}")
        self.enabled = enabled
        self.schedule = Schedule(wait_steps, warmup_steps, active_steps, repeat)
        self.kind = step
        self.files: list[Path] = []
        """Traces written so far."""
        self.predicted: float | None = None
        """Predicted bytes of the next file, known after a warm-up."""
        self.log: Log = _log
        self._options: dict[str, Any] = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
        }
        self._folder = None if dir is None else Path(dir).absolute()
        self._profiler = profiler or get_profiler()
        self._thread = 0
        self._torch: Any = None
        self._annotations: SpanAnnotations | None = None
        self._step = 0
        self._begun = 0.0
        self._begins = False
        self._history: list[bool] = []
        self._sizes = StepSizes()
        self._failed = False
        self._step_finder: StepFinder | None = None
        if planned_steps is not None:
            self.plan(planned_steps)

    def plan(self, steps: int) -> None:
        """Warn if the run will have too few steps for the schedule."""
        warning = announced(self.schedule, self.kind, steps) if self.enabled else None
        if warning is not None:
            self.log(warning)

    def begin(self) -> TorchCapture:
        """Begin to look for steps. The first one begins at the first boundary that is seen; with marked steps, here."""
        if self.enabled and self._step_finder is None:
            self._step_finder = StepFinder(self._profiler, self)
            if self.kind == MARK and get_ident() == self._profiler.driver:
                self.start()
        return self

    def start(self) -> TorchCapture:
        """The first step begins."""
        if self.enabled and not self._thread:
            self._thread = get_ident()
            self._enter(self.schedule.state(0))
        return self

    def step(self) -> None:
        """The current step ends, and the next begins."""
        if not self._thread:
            self.start()
        if get_ident() != self._thread or self.is_done:
            return
        state = self.schedule.state(self._step)
        self._leave()
        self._step += 1
        following = self.schedule.state(self._step)
        if state == WARMUP and following != WARMUP:
            self._try(self._end_warmup)
        elif state == ACTIVE and (following != ACTIVE or self._step % self.schedule.cycle == 0):
            self._try(self._write)
        self._enter(following)

    def iteration_begins(self) -> None:
        """An iteration begins in the current step."""
        self._begins = True

    @property
    def started(self) -> bool:
        return self._thread != 0

    @property
    def is_done(self) -> bool:
        """True if everything is captured, or the capture has failed."""
        return self._failed or self.schedule.state(self._step) == DONE

    @property
    def folder(self) -> Path:
        """Folder for traces (default: `traces` in the session's folder)."""
        if self._folder is None:
            recording = self._profiler.recording
            session = recording.folder if recording is not None else None
            self._folder = (session if session is not None else sessions_folder().absolute()) / "traces"
        return self._folder

    def stop(self) -> None:
        """The run ends. Active steps captured so far are written. Warns if some were missed."""
        if self._step_finder is not None:
            self._step_finder.end()
        if self._failed or not self.enabled:
            return
        if self._thread and not self.is_done and get_ident() == self._thread:
            state = self.schedule.state(self._step)
            self._leave()
            self._step += 1  # the end of the run ends its last step too
            if self._torch is not None:
                self._try(self._write if state == ACTIVE else self._discard)
        missed = stopped_early(self.schedule, self.kind, self._step)
        if missed is not None:
            self.log(missed)
        self.enabled = False  # a second call does nothing

    def __enter__(self) -> TorchCapture:
        return self.begin()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- one step ----

    def _enter(self, state: str) -> None:
        self._begun = time.perf_counter()
        if state in (WARMUP, ACTIVE) and not self._failed:
            self._try(self._begin_recording)
        self._begins = False

    def _leave(self) -> None:
        seconds = time.perf_counter() - self._begun
        self._history.append(self._begins)
        if self.schedule.state(self._step) == WAIT:
            self._sizes.seconds[self._begins].append(seconds)
        if self._annotations is not None:
            self._try(self._annotations.end_step)

    def _begin_recording(self) -> None:
        if self._torch is None:
            from torch._C._autograd import _profiler_enabled  # noqa: PLC0415 - only where it is installed
            from torch.profiler import profile  # noqa: PLC0415

            if _profiler_enabled():  # a second one would take the events of the first
                raise RuntimeError("a torch.profiler is already running")
            self._torch = profile(**self._options)
            with quiet_kineto():
                self._torch.start()
            self._annotations = SpanAnnotations(self._profiler)
        assert self._annotations is not None
        self._annotations.begin_step(self._step)

    def _end_recording(self) -> Any:
        if self._annotations is not None:
            self._annotations.close()
        ended, self._torch, self._annotations = self._torch, None, None
        ended.stop()
        return ended

    # ---- writing ----

    def _end_warmup(self) -> None:
        """Predict the size of the trace from the warm-up, in which torch has loaded everything that it needs."""
        with self._profiler.profile(TRACE_EXPORT):
            path = export(self._end_recording(), self.folder / f".warmup-{os.getpid()}{SUFFIX}")
            try:
                warmed = read_trace(path, places=True)
                sizes, self._sizes.rest = bytes_of_steps(warmed)
                self._sizes.packing = path.stat().st_size / warmed.unpacked
            finally:
                path.unlink(missing_ok=True)
        for begins, size in zip(self._history[-len(sizes) :], sizes):
            self._sizes.bytes[begins].append(size)
        self.predicted = self._sizes.predict(begins_next(self._history, self.schedule.active))
        if self.predicted is None:
            return
        text = self.predicted / self._sizes.packing
        if text > LARGE:
            self.log(
                f"the torch trace of {steps_named(self.schedule.active, self.kind)} will have about "
                f"{text / 1e6:,.0f} MB of JSON, which is a lot for a browser. A smaller --torch-profiler-active or "
                "`rlprof trace cut` helps"
            )

    def _write(self) -> None:
        with self._profiler.profile(TRACE_EXPORT):
            ended = self._end_recording()
            recording = self._profiler.recording
            path = export(ended, self.folder / file_name("training" if recording is None else recording.name))
        self.files.append(path)
        if recording is not None:
            predicted = "" if self.predicted is None else f", predicted {self.predicted:.0f} bytes"
            recording.add_file(path, TRACE)
            recording.mark(TRACE, f"{path.name}: {path.stat().st_size} bytes{predicted}")

    def _discard(self) -> None:
        self._end_recording()

    def _try(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:
            self._failed = True
            self._profiler.warn("the torch capture has failed and was stopped", error)
            if self._profiler.recording is not None:
                self._profiler.recording.mark(FAILED, str(error))
            annotations, self._torch, self._annotations = self._annotations, None, None
            if annotations is not None:
                annotations.forget()
