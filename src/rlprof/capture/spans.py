"""Who wants to be told of every span. While nobody does, spans cost what they always do."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from rlprof.ledger.profiler import Profiler

Watcher = Callable[[str, bool], None]
"""Called with an operation's name, and whether a span of it begins, on the thread it is on."""

_watchers: weakref.WeakKeyDictionary[Profiler, list[Watcher]] = weakref.WeakKeyDictionary()


def watch_spans(profiler: Profiler, watcher: Watcher, first: bool = False) -> Callable[[], None]:
    """Returns what ends it. first: before all others are told."""
    watchers = _watchers.setdefault(profiler, [])
    watchers.insert(0 if first else len(watchers), watcher)
    _tell(profiler.ledger, watchers)

    def unwatch() -> None:
        if watcher in watchers:
            watchers.remove(watcher)
            _tell(profiler.ledger, watchers)

    return unwatch


def _tell(ledger: Any, watchers: list[Watcher]) -> None:
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
