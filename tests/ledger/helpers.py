"""Threads, tasks and programs that tests of the ledger run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fakes import Actor

from rlprof.ledger import profiler

NEEDS_SHARING = [
    pytest.mark.skipif(profiler._core is None, reason="only the C core shares"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def in_thread(function: Callable[[], Any], name: str | None = None) -> None:
    thread = threading.Thread(target=function, name=name)
    thread.start()
    thread.join()


@contextmanager
def inside(actor: Actor, span: Any) -> Iterator[None]:
    """Keep the actor's thread inside a span during the block."""
    actor.enter(span)
    yield
    actor.exit(span)


@contextmanager
def in_threads(*functions: Callable[[], Any]) -> Iterator[None]:
    """Threads that run beside the block; it makes them end."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()


def run_tasks(*coroutines: Coroutine[Any, Any, Any]) -> None:
    """Run asyncio tasks beside one another, to their end."""

    async def main() -> None:
        await asyncio.gather(*coroutines)

    asyncio.run(main())


def run_program(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **environment}
    )
