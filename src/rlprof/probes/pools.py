"""Tasks of the worker pools of multiprocessing, concurrent.futures and loky, which joblib uses.

A pool's worker runs any function that it is sent, often without a span. A span around each task shows that the worker
is at work, and makes its process a lane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from rlprof.probes.patches import Patches

TASK = "pool_task"


class _Tasks:
    """A pool's queue of tasks, as a worker sees it: the function of each task is timed."""

    def __init__(self, queue: Any, timed: Callable[[Any], Any]) -> None:
        self._queue = queue
        self._timed = timed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        return self._timed(self._queue.get(*args, **kwargs))


def _replace(module: ModuleType, name: str, patches: Patches, time_task: Callable[[Any, Any], Any]) -> None:
    """Replace the function that a pool's worker runs. Its first argument is the queue of tasks."""
    span, timed = patches.profiler.profile(TASK), patches.profiler.timed_type

    def time_function(function: Any) -> Any:
        return timed(span, function, function)  # in C: a traceback that is sent back has no frame of rlprof

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def work(queue: Any, *args: Any, **kwargs: Any) -> Any:
            return original(_Tasks(queue, lambda task: time_task(task, time_function)), *args, **kwargs)

        return work

    patches.replace(module, name, make)


def attach_pool(pool: ModuleType, patches: Patches) -> None:
    raises = getattr(pool, "_helper_reraises_exception", None)

    def time_task(task: Any, time_function: Callable[[Any], Any]) -> Any:
        if not isinstance(task, tuple) or len(task) != 5 or task[2] is raises:
            return task  # the end, or a failure: the worker compares the function with this one
        job, number, function, args, kwargs = task
        return job, number, time_function(function), args, kwargs

    _replace(pool, "worker", patches, time_task)


def attach_executor(process: ModuleType, patches: Patches) -> None:
    def time_task(item: Any, time_function: Callable[[Any], Any]) -> Any:
        if hasattr(item, "fn"):
            item.fn = time_function(item.fn)
        return item

    _replace(process, "_process_worker", patches, time_task)
