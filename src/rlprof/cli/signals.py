"""Ends the processes that a command has started when the command itself is terminated."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def ends_well() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit in this block, so that everything is closed. Exit codes are a shell's."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    numbers = [number for number in (signal.SIGTERM, getattr(signal, "SIGHUP", None)) if number is not None]
    before = {number: signal.signal(number, _exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
