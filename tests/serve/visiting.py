"""A real training, and pages of a server in a real browser."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from serving import until

from rlprof.analysis.report import Report, build_report
from rlprof.serve.server import Served
from rlprof.session.reader import Session

LOOP = """
import sys, threading, time
from pathlib import Path
from rlprof import get_profiler, profile

def beside():
    while True:
        with profile("telemetry"):
            time.sleep(0.02)
        time.sleep(0.01)

threading.Thread(target=beside, name="beside", daemon=True).start()
while not Path(sys.argv[1]).exists():
    with get_profiler().iteration():
        with profile("rollout"):
            for _ in range(10):
                with profile("policy_forward"):
                    time.sleep(0.0005)
                with profile("env_step"):
                    time.sleep(0.001)
                get_profiler().add_steps(8)
        with profile("update"), profile("backward"):
            time.sleep(0.01)
"""


class Visitor:
    """Opens pages, and keeps what they complain about."""

    def __init__(self, browser: Any, served: Served) -> None:
        self._browser, self.served = browser, served
        self.complaints: list[str] = []

    def __call__(self, path: str = "/", width: int = 1280, scheme: str = "light") -> Any:
        # With motion, scrolling takes time, and places that are read meanwhile are none.
        screen = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "reduced_motion": "reduce"}
        context = self._browser.new_context(**screen)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.goto(f"http://127.0.0.1:{self.served.port}/?token={self.served.guard.token}")
        page.goto(f"http://127.0.0.1:{self.served.port}{path}")
        return page


class Training:
    """A training that `rlprof run` records, in another process."""

    def __init__(self, folder: Path) -> None:
        self.runs = folder / "runs"
        self._end = folder / "end"
        script = folder / "loop.py"
        script.write_text(LOOP)
        command = [sys.executable, "-m", "rlprof", "run", "--dir", str(self.runs), str(script), str(self._end)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.folder = until(lambda: next(iter(self.runs.glob("*/session.db")), None)).parent

    def end(self) -> None:
        self._end.touch()
        self.process.wait(60)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)


def report_of(folder: Path) -> Report:
    with Session(folder) as session:
        return build_report(session)


def changed(page: Any, selector: str) -> str:
    """Wait until a text differs from what it is now. Returns the new text."""
    before = page.inner_text(selector)
    until(lambda: page.inner_text(selector) != before)
    return str(page.inner_text(selector))


def run_page(visitor: Visitor, training: Training, **settings: Any) -> Any:
    page = visitor(f"/run/{training.folder.name}", **settings)
    until(lambda: page.locator(".verdict").count())  # the page of a start becomes the page of the report by itself
    return page
