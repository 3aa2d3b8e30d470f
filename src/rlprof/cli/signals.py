"""A command that has started processes and is told to end takes them with it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def ends_well() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP leave by the way that closes what was opened; exit codes are as a shell has them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    numbers = [number for number in (signal.SIGTERM, getattr(signal, "SIGHUP", None)) if number is not None]
    before = {number: signal.signal(number, _leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
