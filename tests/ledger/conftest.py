"""Profilers on both cores, on a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes import CORES, Actor, Fake
from ledger.hands import Driver, Process

from rlprof import Profiler
from rlprof.ledger import tasks


@pytest.fixture(params=CORES)
def core(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def profiler(core: str) -> Iterator[Profiler]:
    """On the real clock."""
    profiler = Profiler(core)
    profiler.enable()
    yield profiler
    profiler.disable()


@pytest.fixture
def followed(profiler: Profiler) -> Profiler:
    """On the real clock, where thread CPU time can be followed."""
    if profiler.snapshot().cpu == "off":
        pytest.skip("thread CPU time cannot be followed here")
    return profiler


@pytest.fixture
def fake(core: str) -> Iterator[Fake]:
    fake = Fake(core)
    yield fake
    fake.profiler.disable()


@pytest.fixture
def actors() -> Iterator[Callable[[str], Actor]]:
    made: list[Actor] = []

    def make(name: str = "actor-0") -> Actor:
        made.append(Actor(name))
        return made[-1]

    yield make
    for actor in made:
        actor.end()


@pytest.fixture(autouse=True)
def _asyncio_is_put_back() -> Iterator[None]:
    yield
    assert tasks._followers == []
    assert tasks._wrappers == {}


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    driver = Driver(tmp_path / "shared")
    yield driver
    driver.end()


@pytest.fixture(params=["fork", "join"])
def begin(request: pytest.FixtureRequest, driver: Driver) -> Callable[[], Process]:
    return driver.fork if request.param == "fork" else driver.join
