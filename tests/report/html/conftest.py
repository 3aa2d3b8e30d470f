"""A report of a training, and a browser that opens it."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from components import missing
from pages import Opener, session, training

from rlprof.analysis.report import Report
from rlprof.analysis.resources import Samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("html")


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    """A training, with samples of a machine that could not always be read."""
    found = session(folder, "cartpole", training)
    samples = Samples(
        time_ns=tuple(range(0, 6_000_000_000, 1_000_000_000)),
        cpu=(90.0, 95.0, None, None, 80.0, 85.0),
        machine_cpu=(50.0,) * 6,
        rss=(2**28, 2**28, None, 2**28, 2**28, 2**28),
        machine_available=(2**33,) * 6,
        held_up=(0.0,) * 6,
        **dict.fromkeys(("allocated", "children_cpu", "children_rss", "device_busy", "device_memory"), (None,) * 6),
    )
    resources = replace(found.facts.resources, samples=samples, cpu_mean=87.5, rss_peak=2**28)
    return replace(found, facts=replace(found.facts, resources=resources))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if importlib.util.find_spec("playwright") is None:
        missing("playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        missing("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def opener(browser: Any, folder: Path) -> Opener:
    return Opener(browser, folder)


@pytest.fixture(autouse=True)
def silent(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test makes a page log an error or send a network request."""
    yield
    if "opener" in request.fixturenames:
        opener = request.getfixturevalue("opener")
        assert (opener.complaints, opener.requests) == ([], [])


@pytest.fixture(scope="module")
def shared(opener: Opener, report: Report) -> Any:
    return opener(report)


@pytest.fixture
def page(shared: Any) -> Iterator[Any]:
    """The report's page in light colours at desktop width. The next test gets it in the same state."""
    yield shared
    shared.set_viewport_size({"width": 1280, "height": 900})
    shared.emulate_media(color_scheme="light", media="screen")
