"""Keeps torch's profiler library, Kineto, from writing `USDT:...` lines to standard error around every capture."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_LEVEL = "KINETO_LOG_LEVEL"
_NOTHING = "6"
"""One above the level of these lines, which is the highest. No level keeps errors and drops these lines. rlprof reports
a capture that fails."""


@contextmanager
def quiet_kineto() -> Iterator[None]:
    """Wrap the first start of a torch profiler in this process: Kineto reads its log level then, and only then.

    A level that the user has set stays. The variable is removed afterwards, so child processes do not inherit it.
    """
    if _LEVEL in os.environ:
        yield
        return
    os.environ[_LEVEL] = _NOTHING
    try:
        yield
    finally:
        os.environ.pop(_LEVEL, None)
