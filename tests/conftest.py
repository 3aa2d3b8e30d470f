"""Fixtures for the tests of several folders."""

from __future__ import annotations

import fcntl
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import Actor
from planted import Planted
from sessions import Written
from traces import RECORDED, record_trace

# If the tests run in the background, these signals may be ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def recorded_trace(tmp_path_factory) -> Path:
    """A real torch trace of a training on the CPU, recorded once for all workers of this run."""
    pytest.importorskip("torch", reason="torch is not installed, so no trace can be recorded here")
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if base.name.startswith("popen-gw") else base
    path = folder / RECORDED.name
    with (folder / "recording.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            record_trace(path)
    return path


@pytest.fixture
def path(request) -> Path:
    """A trace of `real_traces()`."""
    return request.getfixturevalue("recorded_trace") if request.param == RECORDED else request.param


@pytest.fixture
def planted() -> Planted:
    return Planted()


@pytest.fixture
def actor() -> Iterator[Actor]:
    """A thread that does one thing at a time, when requested."""
    found = Actor("worker-0")
    yield found
    found.end()


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)
