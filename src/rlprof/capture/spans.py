"""Watchers that are called at the begin and end of every span. Without any, spans cost no more than usual."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from rlprof.ledger.profiler import Profiler

Watcher = Callable[[str, bool], None]
"""Called on the thread of the span with the operation's name, and True where it begins."""

_watchers: weakref.WeakKeyDictionary[Profiler, list[Watcher]] = weakref.WeakKeyDictionary()


def watch_spans(profiler: Profiler, watcher: Watcher, first: bool = False) -> Callable[[], None]:
    """Returns a function that removes the watcher. first: call it before all other watchers."""
    watchers = _watchers.setdefault(profiler, [])
    watchers.insert(0 if first else len(watchers), watcher)
    _install(profiler.ledger, watchers)

    def unwatch() -> None:
        if watcher in watchers:
            watchers.remove(watcher)
            _install(profiler.ledger, watchers)

    return unwatch


def _install(ledger: Any, watchers: list[Watcher]) -> None:
    if not watchers:
        ledger.watch(None)
    elif len(watchers) == 1:
        ledger.watch(watchers[0])
    else:
        several = tuple(watchers)

        def each(name: str, begins: bool) -> None:
            for watcher in several:
                watcher(name, begins)

        ledger.watch(each)
