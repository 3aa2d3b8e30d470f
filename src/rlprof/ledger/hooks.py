"""What a core, in C or Python, calls of the rest of rlprof: names, categories, warnings."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Callable
from time import thread_time_ns
from typing import Any

from rlprof.ledger import catalogue, tasks
from rlprof.ledger.decorate import decorate, reduce


class RlprofWarning(UserWarning):
    """Something in rlprof failed. The training goes on. The message names what is not recorded."""


def group_of(name: str) -> str:
    """Group of a lane: 'ThreadPoolExecutor-0_3' and 'ThreadPoolExecutor-0_4' are both 'ThreadPoolExecutor-#_#'."""
    if name.startswith("Task-") and name[5:].isdecimal():
        return "Task-#"  # asyncio makes names by the thousand
    return re.sub(r"\d+", "#", name)


class Hooks:
    """The hooks of one ledger."""

    classify = staticmethod(catalogue.classify)
    find_asyncio = staticmethod(tasks.find_asyncio)
    reduce_function = staticmethod(reduce)
    group_of = staticmethod(group_of)

    def __init__(self, timed: Callable[[Any, Any, Any], Any]) -> None:
        self._timed = timed
        self._warned: set[str] = set()
        self.reduce: Callable[[], Any] = self._cannot_pickle
        """Pickles objects that belong to the ledger."""
        self.ledger: Any = None
        """Set after the ledger is made, because it is made with these hooks."""
        self.measure_step_cost: Callable[[], int] = int
        """Called when the first asyncio task is seen."""
        self.at_first_span: Callable[[], None] | None = None
        """Called at the first span of a process, if set: see rlprof.recording.worker."""
        self._seen = False

    @staticmethod
    def _cannot_pickle() -> Any:
        raise TypeError("this ledger has no profiler to be pickled as")

    def name_thread(self, ident: int) -> tuple[str, str]:
        # Not threading.current_thread(): in a thread that Python did not start it leaves a dummy behind.
        thread = threading._active.get(ident)  # type: ignore[attr-defined]  # the public ways all make the dummy
        name = "foreign thread" if thread is None else thread.name
        return name, group_of(name)

    def saw_thread(self) -> None:
        """The first span in this process begins."""
        if self.at_first_span is not None:
            self.at_first_span()

    def saw_task(self) -> None:
        """A span begins in an asyncio task: from now on the event loop is followed."""
        if not self.ledger.follows_tasks:
            self.ledger.follows_tasks = True
            self.ledger.step_cost = self.measure_step_cost()
            tasks.follow(self.ledger)

    def forget_tasks(self) -> None:
        """Recording stops: asyncio is put back as it was."""
        self._seen = self._seen or self.ledger.follows_tasks
        self.ledger.follows_tasks = False
        tasks.unfollow(self.ledger)

    def resume_tasks(self) -> None:
        """Recording goes on: tasks that have a lane already are followed again."""
        if self._seen:
            self.saw_task()

    def decorate(self, span: Any, function: Any) -> Any:
        return decorate(span, function, self.ledger.recorder, self._timed)

    def spin(self, ns: int) -> None:
        """Compute for so much CPU time, in Python code."""
        end = thread_time_ns() + ns
        while thread_time_ns() < end:
            pass

    def warn(self, what: str, cause: BaseException | None, stacklevel: int = 3) -> None:
        """Warn once. Never raises, not even if warnings are made errors: the training goes on."""
        if what in self._warned:
            return
        self._warned.add(what)
        try:
            because = "" if cause is None else f" ({type(cause).__name__}: {cause})"
            try:
                warnings.warn(f"rlprof: {what}{because}", RlprofWarning, stacklevel=stacklevel)
            except RlprofWarning as warning:
                print(warning, file=sys.stderr)  # noqa: T201 - the only way that is left
        except Exception:
            pass  # standard error is closed, or the cause cannot be printed
