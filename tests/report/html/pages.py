"""Reports, and pages of them in a browser, for the tests of the HTML report."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count as numbers
from pathlib import Path
from typing import Any

from rlprof import Profiler, record
from rlprof.analysis.report import Report, build_report
from rlprof.report.html.document import to_html
from rlprof.session.reader import Session

CHARTS = ("icicle", "ledger", "distribution", "resources")

LIGHT_INK, DARK_INK = "#1a1d23", "#e8ebf0"


def session(folder: Path, name: str, work: Callable[[Profiler], None]) -> Report:
    """The report of a recording made by a profiler of its own."""
    profiler = Profiler()
    with record(name, dir=folder, profiler=profiler, settings={"envs": 8, "<i>": "</dd>"}) as recording:
        work(profiler)
    with Session(recording.folder) as read:
        report = build_report(read)
    report.facts.check()
    return report


def training(profiler: Profiler) -> None:
    """Four iterations on the driver, with a thread that works beside it."""

    def beside() -> None:
        with profiler.profile("telemetry"):
            time.sleep(0.02)

    for _ in range(4):
        thread = threading.Thread(target=beside, name="beside")
        thread.start()
        with profiler.iteration():
            for step in range(30):
                with profiler.profile("policy_forward"):
                    time.sleep(0.0002)
                with profiler.profile("env_step"):
                    time.sleep(0.0001 * 1.12**step)  # so that no two percentiles are one
                profiler.add_steps(8)
            with profiler.profile("update"):
                with profiler.profile("backward"):
                    time.sleep(0.02)
                with profiler.profile("optimizer_step", track_memory=True):
                    time.sleep(0.002)
        thread.join()


def one_span(name: str, seconds: float) -> Callable[[Profiler], None]:
    """A program that only has this span."""

    def work(profiler: Profiler) -> None:
        with profiler.profile(name):
            time.sleep(seconds)

    return work


class Opener:
    """Opens reports and records the network requests and console messages of each page."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self._browser, self._folder = browser, folder
        self._number = numbers()
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def __call__(self, report: Report, width: int = 1280, scheme: str = "light") -> Any:
        path = self._folder / f"report_{next(self._number)}.html"
        path.write_text(to_html(report), encoding="utf-8")
        page = self._browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())
        self.requests.remove(path.as_uri())
        return page


def rows_of(page: Any, selector: str) -> list[list[str]]:
    script = "rows => rows.map(row => Array.from(row.cells, cell => cell.textContent))"
    found: list[list[str]] = page.locator(f"{selector} tr").evaluate_all(script)
    return found


def chart(page: Any, id: str, what: str) -> Any:
    return page.evaluate(f"() => document.getElementById('{id}').{what}")


def until(page: Any, condition: str) -> None:
    """Poll from outside: the page's content security policy forbids playwright's own way of waiting."""
    end = time.monotonic() + 10
    while not page.evaluate(f"() => {condition}"):
        assert time.monotonic() < end, condition
        time.sleep(0.02)


def slice_named(page: Any, name: str) -> Any:
    return page.locator("#icicle g.slice", has_text=name).first


def overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))
