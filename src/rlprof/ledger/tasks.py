"""Reports to ledgers when an asyncio event loop begins and ends a callback.

A task that awaits inside a span leaves its thread to other tasks, and no span shows that. But every callback, with
every step of a task, goes through `asyncio.Handle._run`. That method is wrapped once a ledger has seen a task, and put
back when the last ledger stops. With loops that do not use it (uvloop), a switch is noticed at the next span.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

Run = Callable[[Any], None]


class Steps(Protocol):
    """The methods of a ledger that an event loop needs."""

    def follow(self, run: Run, /) -> Run: ...


class _Wrapper(NamedTuple):
    run: Run
    original: Run


_followers: list[Steps] = []
_wrappers: dict[int, _Wrapper] = {}
"""By the ledger's id. A wrapper stays as long as another library's wrapper is around it."""


def find_asyncio() -> tuple[Callable[[], Any], Callable[[Any], Any]] | None:
    """The functions that return this thread's running loop, and a loop's running task. Never imports asyncio."""
    events, tasks = sys.modules.get("asyncio.events"), sys.modules.get("asyncio.tasks")
    running_loop = getattr(events, "_get_running_loop", None)
    # Not asyncio's dict of tasks: since Python 3.14 the running task is in the thread's state.
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
    """Stop reporting to this ledger. After the last ledger, asyncio is as it was.

    If another library has wrapped our wrapper, ours stays and only passes calls on.
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
