"""What a ledger's core, in C or Python, asks the rest of rlprof: names, categories, and how to say what went wrong."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable
from typing import Any

from rlprof.ledger import catalogue, tasks
from rlprof.ledger.decorate import decorate


class RlprofWarning(UserWarning):
    """Something in rlprof failed. The training goes on; the message says what is missing from the record."""


class Hooks:
    """One a ledger."""

    def __init__(self, timed: Callable[[Any, Any, Any], Any]) -> None:
        self._timed = timed
        self._said: set[str] = set()
        self.ledger: Any = None
        """Set once it is made: it is made with these hooks."""

    def classify(self, name: str, category: str | None) -> tuple[str, bool]:
        return catalogue.classify(name, category)

    def name_thread(self, ident: int) -> tuple[str, str]:
        # Not threading.current_thread(): in a thread that Python did not start it leaves a dummy behind.
        thread = threading._active.get(ident)  # type: ignore[attr-defined]  # the public ways all make the dummy
        name = "foreign thread" if thread is None else thread.name
        return name, group_of(name)

    def name_task(self, task: Any) -> tuple[str, str]:
        name = task.get_name()
        return name, group_of(name)

    def running_task(self) -> Any:
        task = tasks.running_task()
        if task is not None:
            tasks.follow(self.ledger)
        return task

    def decorate(self, span: Any, function: Any) -> Any:
        return decorate(span, function, self.ledger.recorder, self._timed)

    def warn(self, what: str, cause: BaseException | None) -> None:
        if what not in self._said:
            self._said.add(what)
            because = "" if cause is None else f" ({type(cause).__name__}: {cause})"
            warnings.warn(f"rlprof: {what}{because}", RlprofWarning, stacklevel=3)


def group_of(name: str) -> str:
    """What lanes of one make share: 'ThreadPoolExecutor-0_3' and '..._4' are both 'ThreadPoolExecutor-#_#'."""
    return re.sub(r"\d+", "#", name)
