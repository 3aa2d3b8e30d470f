"""The Python stacks of a training, for its page."""

from __future__ import annotations

from typing import Any

from rlprof.live.stacks import ProcessStacks, ThreadStack, request_stacks
from rlprof.render.html.markup import plain_name, prose
from rlprof.render.names import short_path
from rlprof.serve.watch import Watch

_MOST_PROCESSES = 64
_MOST_THREADS = 32
_MOST_FRAMES = 100
"""The innermost ones."""


def stacks_of(watch: Watch) -> list[dict[str, Any]]:
    """One entry per process. Raises RlprofError if the training does not run. Takes a second, or some."""
    return [_process(process) for process in request_stacks(watch.folder)[:_MOST_PROCESSES]]


def _process(process: ProcessStacks) -> dict[str, Any]:
    return {
        "name": f"{plain_name(process.name)}, process {process.pid}",
        "problem": prose(process.problem),
        "threads": [_thread(thread) for thread in process.threads[:_MOST_THREADS]],
    }


def _thread(thread: ThreadStack) -> dict[str, Any]:
    shown = thread.frames[-_MOST_FRAMES:]
    hidden = thread.hidden + len(thread.frames) - len(shown) if thread.hidden >= 0 else -1
    return {
        "name": plain_name(thread.name),
        "hidden": hidden,
        "frames": [
            {
                "where": short_path(prose(f"{file}:{line}" if line else file), 60),
                "path": prose(file),
                "function": plain_name(function),
                "source": prose(source),
            }
            for file, line, function, source in shown
        ],
    }
