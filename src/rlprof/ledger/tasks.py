"""Tells ledgers when an asyncio event loop begins and ends to run a callback.

A task that awaits inside a span leaves its thread to others without a word. The loop knows: every callback, a task's
step included, goes through `asyncio.Handle._run`. That method is wrapped while a ledger has seen a task, and put back
when the last one stops. Loops that do not use it (uvloop) still give each task its own lane, but the moment of a switch
is then the next span's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol


class Steps(Protocol):
    """What a ledger offers to an event loop."""

    def step(self, handle: Any, /) -> int: ...
    def step_end(self, previous: int, /) -> None: ...


_followers: tuple[Steps, ...] = ()
_original_run: Callable[[Any], None] | None = None


def find_asyncio() -> tuple[Callable[[], Any], dict[Any, Any]] | None:
    """What returns this thread's running loop, and the running task of each loop. Never imports asyncio."""
    events, tasks = sys.modules.get("asyncio.events"), sys.modules.get("asyncio.tasks")
    running_loop = getattr(events, "_get_running_loop", None)
    current_tasks = getattr(tasks, "_current_tasks", None)
    if running_loop is None or not isinstance(current_tasks, dict):
        return None  # not imported, or a Python that keeps its tasks elsewhere: spans are booked to threads
    return running_loop, current_tasks


def follow(ledger: Steps) -> None:
    """Tell this ledger of every callback from now on."""
    global _followers, _original_run
    if any(follower is ledger for follower in _followers):
        return
    _followers = (*_followers, ledger)
    if _original_run is None:
        handle = sys.modules["asyncio.events"].Handle
        _original_run = handle._run
        handle._run = _run


def unfollow(ledger: Steps) -> None:
    """Stop telling it; puts asyncio back as it was after the last one."""
    global _followers, _original_run
    _followers = tuple(follower for follower in _followers if follower is not ledger)
    if not _followers and _original_run is not None:
        handle = sys.modules["asyncio.events"].Handle
        if handle._run is _run:  # somebody else's wrapper round ours stays; ours then only passes calls on
            handle._run = _original_run
            _original_run = None


def _run(handle: Any) -> None:
    assert _original_run is not None
    followed(_followers, _original_run, handle)


def followed(followers: tuple[Steps, ...], run: Callable[[Any], None], handle: Any) -> None:
    """Run a callback between `step` and `step_end` of each follower."""
    if not followers:
        run(handle)
        return
    first, *others = followers
    previous = first.step(handle)
    try:
        followed(tuple(others), run, handle) if others else run(handle)
    finally:
        first.step_end(previous)
