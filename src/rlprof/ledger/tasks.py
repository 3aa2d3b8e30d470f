"""Tells ledgers when an asyncio event loop begins and ends to run a callback.

A task that awaits inside a span leaves its thread to others without a word. The loop knows: every callback, a task's
step included, goes through `asyncio.Handle._run`. That method is wrapped while a ledger has seen a task, and put back
when the last one stops. Loops that do not use it (uvloop) still give each task its own lane, but the moment of a switch
is then the next span's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

Run = Callable[[Any], None]


class Steps(Protocol):
    """What a ledger offers to an event loop."""

    def follow(self, run: Run, /) -> Run: ...


class _Wrapper(NamedTuple):
    run: Run
    original: Run


_followers: list[Steps] = []
_wrappers: dict[int, _Wrapper] = {}
"""By the ledger's id. A wrapper that another library has wrapped outlives its ledger's following."""


def find_asyncio() -> tuple[Callable[[], Any], Callable[[Any], Any]] | None:
    """What returns this thread's running loop, and the task that runs on a loop. Never imports asyncio."""
    events, tasks = sys.modules.get("asyncio.events"), sys.modules.get("asyncio.tasks")
    running_loop = getattr(events, "_get_running_loop", None)
    # Not the dict of tasks behind it: since Python 3.14 the running task is on the thread's state.
    current_task = getattr(tasks, "current_task", None)
    if running_loop is None or current_task is None:
        return None  # not imported: spans are booked to threads
    return running_loop, current_task


def follow(ledger: Steps) -> None:
    """Report every callback to this ledger from now on."""
    if any(follower is ledger for follower in _followers):
        return
    _followers.append(ledger)
    if id(ledger) not in _wrappers:
        handle = sys.modules["asyncio.events"].Handle
        original = handle._run
        _wrappers[id(ledger)] = _Wrapper(ledger.follow(original), original)
        handle._run = _wrappers[id(ledger)].run


def unfollow(ledger: Steps) -> None:
    """Stop reporting to it; puts asyncio back as it was after the last one.

    Another library's wrapper around ours stays. Ours then only passes calls on, as the ledger is off.
    """
    _followers[:] = [follower for follower in _followers if follower is not ledger]
    active = {id(follower) for follower in _followers}
    while _wrappers:
        outermost, wrapper = next(reversed(_wrappers.items()))
        handle = sys.modules["asyncio.events"].Handle
        if outermost in active or handle._run is not wrapper.run:
            return
        handle._run = wrapper.original
        del _wrappers[outermost]
