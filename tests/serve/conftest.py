"""A server with two runs, for all tests of a module."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from components import missing

if importlib.util.find_spec("starlette") is None or importlib.util.find_spec("uvicorn") is None:
    collect_ignore_glob = ["test_*.py"]  # they import the server
else:
    from serving import Client, recorded, serving

    from rlprof.serve.server import Served


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, and a file beside it that nobody may read."""
    folder = tmp_path_factory.mktemp("served") / "runs"
    folder.mkdir()
    (folder.parent / "private.txt").write_text("secret of the user")
    for envs in (4, 8):
        recorded(folder, f"ppo{envs}", envs=envs, lr=0.001)
    return folder


@pytest.fixture(scope="module")
def served(runs: Path) -> Iterator[Served]:
    with serving(runs) as served:
        yield served


@pytest.fixture
def stranger(served: Served) -> Client:
    """A client without the token."""
    return Client(served)


@pytest.fixture(scope="module")
def client(served: Served) -> Client:
    return Client(served).log_in()


@pytest.fixture(scope="module")
def run(runs: Path) -> Path:
    """The first run."""
    return next(iter(sorted(folder for folder in runs.iterdir() if folder.name.startswith("ppo4"))))


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
