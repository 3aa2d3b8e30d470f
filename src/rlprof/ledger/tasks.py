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


def running_task() -> Any:
    """The asyncio task that runs on this thread, or None. Never imports asyncio."""
    tasks = sys.modules.get("asyncio.tasks")
    events = sys.modules.get("asyncio.events")
    if tasks is None or events is None:
        return None
    loop = events._get_running_loop()
    return None if loop is None else tasks.current_task(loop)


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
        if handle._run is _run:  # somebody else's wrapper round ours stays; ours then passes calls on
            handle._run = _original_run
            _original_run = None


def _run(handle: Any) -> None:
    followers = _followers
    previous = [follower.step(handle) for follower in followers]
    try:
        assert _original_run is not None
        _original_run(handle)
    finally:
        for follower, lane in zip(followers, previous):
            follower.step_end(lane)
