"""Iterations of a training that takes its batches from a collector: a rollout, then an update with the batch."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from threading import get_ident
from typing import Any

from rlprof.ledger.profiler import Profiler
from rlprof.probes import phases
from rlprof.probes.patches import Patches

_NOTHING = nullcontext()

Iterate = Callable[[Any], Generator[Any, Any, Any]]


class Iterations:
    """The iterations of a process. The first collector that is iterated over marks them, until it ends."""

    def __init__(self, profiler: Profiler) -> None:
        self.profiler = profiler
        self.rollout: AbstractContextManager[Any] = profiler.profile("rollout")
        self.update = profiler.profile("update")
        self.marked = False
        """True while a collector marks the iterations."""
        self._marker: weakref.ref[Any] | None = None
        self._loop_of: weakref.WeakKeyDictionary[Any, CollectorLoop] = weakref.WeakKeyDictionary()

    def iterated(self, original: Iterate) -> Iterate:
        """Replaces a collector's `__iter__`: the same generator, with spans between its items."""

        @wraps(original)
        def __iter__(collector: Any) -> Generator[Any, Any, Any]:  # noqa: N807 - it is shown in tracebacks
            batches = original(collector)
            loop = self._loop_of[collector] = CollectorLoop(self, collector)
            resume: Callable[[], Any] = batches.__next__
            try:
                while True:
                    try:
                        with loop.begin(collector):
                            batch = resume()
                    except StopIteration as stop:
                        return stop.value
                    loop.hand_out(collector, batch)
                    try:
                        sent = yield batch
                    except GeneratorExit:
                        loop.end()
                        batches.close()
                        raise
                    except BaseException as error:
                        resume = partial(batches.throw, error)
                    else:
                        resume = batches.__next__ if sent is None else partial(batches.send, sent)
            finally:
                loop.end()
                loop.count_frames(collector)  # some collectors count a batch when the next is requested
                self.leave(collector)

        return __iter__

    def shut_down(self, original: Any) -> Any:
        """Replaces a collector's `shutdown`: the work with its last batch has ended."""

        @wraps(original)
        def shutdown(collector: Any, *args: Any, **kwargs: Any) -> Any:
            loop = self._loop_of.get(collector)
            if loop is not None:
                loop.end()
                self.leave(collector)
            return original(collector, *args, **kwargs)

        return shutdown

    def enter(self, collector: Any) -> bool:
        """True if this collector marks the iterations.

        Three kinds of collectors do not: one in a worker, because its batches arrive in the driver; one that fills a
        buffer on a thread of its own; and a second one, which may only evaluate.
        """
        if vars(collector).get("_worker_idx") is not None or get_ident() != self.profiler.leader:
            return False
        if not self.marked or self._marker is None or self._marker() is None:
            self._marker = weakref.ref(collector)
            self.marked = True
            phases.off()
        return self._marker() is collector

    def leave(self, collector: Any) -> None:
        """End the last iteration. The program's work after its loop is not part of it."""
        if self.marked and self._marker is not None and self._marker() is collector:
            self.marked = False
            self.profiler.ledger.iteration(True)

    def evaluated(self, original: Any) -> Any:
        """Replaces an environment's `rollout`. If a collector feeds the training, this is an evaluation. Else the
        training may learn from it."""
        timed = self.profiler.time_function(original, "evaluation", outermost=True)

        @wraps(original)
        def rollout(env: Any, *args: Any, **kwargs: Any) -> Any:
            return (timed if self.marked else original)(env, *args, **kwargs)

        return rollout

    def optimized(self, original: Any) -> Any:
        """Replaces a trainer's `optim_steps`. If collectors work in the background, it marks the iterations."""
        timed = self.profiler.time_function(original, "update", outermost=True)

        @wraps(original)
        def optim_steps(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.marked and get_ident() == self.profiler.leader:
                phases.off()
                self.profiler.iteration()
            return timed(trainer, *args, **kwargs)

        return optim_steps


class CollectorLoop:
    """One loop over a collector."""

    def __init__(self, iterations: Iterations, collector: Any) -> None:
        self._iterations = iterations
        self._profiler = iterations.profiler
        self._counts = vars(collector).get("_worker_idx") is None
        self._frames = _frames_of(collector)
        self._dones: Any = None
        self._working = False
        self._marks = iterations.enter(collector)
        if self._marks:
            _plan(self._profiler, collector)

    def begin(self, collector: Any) -> AbstractContextManager[Any]:
        """The next batch is requested, so the work with the last one has ended. Returns the span of the collection."""
        self.end()
        if _is_exhausted(collector):
            return _NOTHING
        if self._marks:
            self._profiler.iteration()
        return self._iterations.rollout

    def hand_out(self, collector: Any, batch: Any) -> None:
        """The training works with this batch until it requests the next one."""
        self.count_frames(collector)
        if self._counts and batch is not None:
            try:
                done = batch.get(("next", "done"), None)
                # Read when the next batch is requested: a device may still be computing it.
                self._dones = None if done is None else done.sum()
            except Exception as error:
                self._profiler.warn("TorchRL's episodes are not counted", error)
        if self._marks and self._profiler.enabled:
            self._working = True
            self._iterations.update.__enter__()

    def end(self) -> None:
        """The work with the last batch has ended."""
        if self._working:
            self._working = False
            self._iterations.update.__exit__(None, None, None)
        if self._dones is not None:
            dones, self._dones = self._dones, None
            self._profiler.add_episodes(int(dones))

    def count_frames(self, collector: Any) -> None:
        """Use the collector's own count, because one that writes to a replay buffer hands out no batch."""
        if self._counts:
            frames = _frames_of(collector)
            self._profiler.add_steps(frames - self._frames)
            self._frames = frames


def _frames_of(collector: Any) -> int:
    """Number of frames that the collector has collected so far."""
    return int(getattr(collector, "_frames", 0))  # it may be a tensor


def _plan(profiler: Profiler, collector: Any) -> None:
    """Announce the number of batches."""
    total = getattr(collector, "total_frames", -1)
    each = getattr(collector, "requested_frames_per_batch", getattr(collector, "frames_per_batch", 0))
    if isinstance(total, int) and isinstance(each, int) and 0 < each <= total:
        profiler.plan(iteration=-(-total // each))


def _is_exhausted(collector: Any) -> bool:
    """True if the next request only ends the loop."""
    total = getattr(collector, "total_frames", -1)
    return bool(0 <= total <= _frames_of(collector))


_iterations: dict[Profiler, Iterations] = {}


def iterations_of(patches: Patches) -> Iterations:
    """The iterations of a profiler, shared by the parts of the probe."""
    profiler = patches.profiler
    iterations = _iterations.get(profiler)
    if iterations is None:
        iterations = _iterations[profiler] = Iterations(profiler)
        patches.at_undo(partial(_iterations.__delitem__, profiler))
    return iterations


def is_attached(profiler: Profiler) -> bool:
    return profiler in _iterations
