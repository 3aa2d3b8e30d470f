"""Which Python functions take the time, in the whole run or only inside some phases: cProfile, or stack samples."""

from __future__ import annotations

import cProfile
import io
import marshal
import pstats
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import get_ident
from typing import Any, Protocol

from rlprof.capture.spans import watch_spans
from rlprof.errors import MissingLibraryError
from rlprof.ledger.profiler import Profiler

WHOLE = "whole"
"""Name of the files if no phase is named."""
TOP = 50
INTERVAL = 0.001
"""Seconds between two samples."""


class Recorder(Protocol):
    """Records one thread, and can be paused and resumed."""

    def resume(self) -> None: ...
    def pause(self) -> None: ...
    def files(self, name: str) -> dict[str, bytes]:
        """Contents of the files by their ending; none if nothing was recorded. `name` is shown in them."""


class Calls:
    """cProfile: counts and times every call, which costs about a microsecond per call."""

    def __init__(self) -> None:
        self._profile = cProfile.Profile()
        self.resume, self.pause = self._profile.enable, self._profile.disable

    def files(self, _name: str) -> dict[str, bytes]:
        text = io.StringIO()
        try:
            stats = pstats.Stats(self._profile, stream=text)
        except TypeError:  # nothing was called
            return {}
        stats.sort_stats("cumulative").print_stats(TOP)
        return {".pstats": marshal.dumps(stats.stats), ".txt": text.getvalue().encode()}  # type: ignore[attr-defined]


class Sampler:
    """pyinstrument samples the stack once per millisecond, and the active recorder gets the sample. Stopping
    pyinstrument after each phase would copy all samples each time."""

    def __init__(self) -> None:
        try:
            from pyinstrument.stack_sampler import get_stack_sampler  # noqa: PLC0415 - an extra of its own
        except ImportError as error:
            raise MissingLibraryError("--sample", "pyinstrument", "sample") from error
        self._samplers: Callable[[], Any] = get_stack_sampler
        self._running = False
        self._active: Samples | None = None

    def recorder(self) -> Samples:
        return Samples(self)

    def switch_to(self, samples: Samples | None) -> None:
        self._active = samples
        if not self._running:
            self._running = True
            self._samplers().subscribe(self._see, desired_interval=INTERVAL, use_async_context=False)

    def stop(self) -> None:
        if self._running:
            self._running = False
            self._samplers().unsubscribe(self._see)

    def _see(self, stack: list[str], seconds: float, _async_state: Any) -> None:
        if self._active is not None:
            self._active.seen.append((stack, seconds))


class Samples:
    """The samples taken while this recorder was active."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._began = time.time()
        self.seen: list[tuple[list[str], float]] = []

    def resume(self) -> None:
        self._sampler.switch_to(self)

    def pause(self) -> None:
        self._sampler.switch_to(None)

    def files(self, name: str) -> dict[str, bytes]:
        self._sampler.stop()
        if not self.seen:
            return {}
        from pyinstrument.renderers import ConsoleRenderer, HTMLRenderer  # noqa: PLC0415
        from pyinstrument.session import Session  # noqa: PLC0415

        session = Session(
            frame_records=self.seen,
            start_time=self._began,
            duration=sum(seconds for _, seconds in self.seen),
            min_interval=INTERVAL,
            max_interval=INTERVAL,
            sample_count=len(self.seen),
            start_call_stack=self.seen[0][0],
            target_description=name,
            cpu_time=0.0,
            sys_path=sys.path,
            sys_prefixes=Session.current_sys_prefixes(),
        )
        renderers = {".sampled.txt": ConsoleRenderer(unicode=True), ".sampled.html": HTMLRenderer()}
        return {ending: renderer.render(session).encode() for ending, renderer in renderers.items()}


class FunctionCapture:
    """Records the thread that starts it: the whole run, or each of the named phases separately."""

    def __init__(self, profiler: Profiler, make: Callable[[], Recorder], phases: Sequence[str] = ()) -> None:
        self._profiler = profiler
        self._phases = tuple(dict.fromkeys(phases))
        self._recorders = {name: make() for name in self._phases or (WHOLE,)}
        self._thread = 0
        self._inside: list[str] = []
        self._unwatch: Callable[[], None] | None = None

    def start(self) -> None:
        self._thread = get_ident()
        if self._phases:
            self._unwatch = watch_spans(self._profiler, self._watch)
        else:
            self._recorders[WHOLE].resume()

    def _watch(self, name: str, begins: bool) -> None:
        """Only one recorder is active at a time: a phase inside another phase is recorded as the inner one only."""
        if name not in self._recorders or get_ident() != self._thread:
            return
        if self._inside:
            self._recorders[self._inside[-1]].pause()
        if begins:
            self._inside.append(name)
        elif name in self._inside:
            self._inside.remove(name)
        if self._inside:
            self._recorders[self._inside[-1]].resume()

    def stop(self, folder: Path) -> list[Path]:
        """Write the files and return them."""
        if not self._thread:
            return []
        if self._unwatch is not None:
            self._unwatch()
        if get_ident() != self._thread:
            self._profiler.warn(
                "the profile of functions is lost, because another thread than the recorded one ended it", None
            )
            return []
        self._thread = 0
        for recorder in self._recorders.values():
            recorder.pause()
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name, recorder in self._recorders.items():
            stem = re.sub(r"[^\w.+-]+", "-", name)  # the name of an operation may contain any characters
            for ending, content in recorder.files(stem).items():
                written.append(folder / (stem + ending))
                written[-1].write_bytes(content)
        return written
