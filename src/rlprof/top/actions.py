"""What the keys start beside the dashboard: traces, stacks, reports. Each returns one sentence, or raises RlprofError.

They run on threads of their own. A key that is pressed again while its action runs does nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from rlprof.capture.captures import Request
from rlprof.capture.running import RunningCapture
from rlprof.capture.torch.schedule import EPOCH
from rlprof.errors import RlprofError
from rlprof.session.folder import write_private
from rlprof.session.live import LiveSession
from rlprof.session.requests import pending, withdraw

STEPS = 3
REPORT = "report.html"

Result = TypeVar("Result")


class Actions:
    """Runs one action of each kind at a time."""

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._lock = threading.Lock()

    def start(
        self, kind: str, action: Callable[[], Result], done: Callable[[Result], None], failed: Callable[[str], None]
    ) -> bool:
        """False if one of this kind is running already. `done` and `failed` are called on the action's thread."""
        with self._lock:
            if kind in self._running:
                return False
            self._running.add(kind)

        def run() -> None:
            try:
                result = action()
            except (RlprofError, OSError, ImportError) as error:
                self._end(kind)
                failed(str(error))
            else:
                self._end(kind)
                done(result)

        threading.Thread(target=run, name=f"rlprof top {kind}", daemon=True).start()
        return True

    def _end(self, kind: str) -> None:
        with self._lock:
            self._running.discard(kind)

    def is_running(self, kind: str) -> bool:
        return kind in self._running


def capture_trace(folder: Path) -> str:
    """Capture a torch trace and wait for it."""
    with LiveSession(folder) as session:
        if session.state is not None and not session.state.iterations:
            raise RlprofError(
                "No iteration has ended in this training, so there are no steps to capture. Mark them with"
                " rlprof.iteration(), or start the training with `rlprof run --torch-profiler`."
            )
    request = Request(step=EPOCH, warmup_steps=1, active_steps=STEPS)
    return f"The trace is {shown(RunningCapture(folder, request).wait())}."


def withdraw_requests(folder: Path) -> None:
    """Remove the requests of this process. A training that has read one goes on with it."""
    for path in pending(folder):
        if f"-{os.getpid()}-" in path.name:
            withdraw(path)


def write_report(folder: Path) -> str:
    """Write the HTML report into the session's folder, or into the working directory, and open it."""
    from rlprof.analysis.report import build_report  # noqa: PLC0415 - slow to import, and rarely needed
    from rlprof.report.formats import renderer  # noqa: PLC0415
    from rlprof.session.reader import Session  # noqa: PLC0415

    with Session(folder) as session:
        page = renderer("html")(build_report(session)).encode("utf-8", "replace")
    path = folder / REPORT
    try:
        write_private(path, page)
    except OSError:
        path = Path.cwd() / f"{folder.name}.html"
        write_private(path, page)
    opened = " It opens in the browser." if _open(path) else ""
    return f"The report is {shown(path)}.{opened}"


def shown(path: Path) -> str:
    """Relative to the working directory, if the file is in it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(path)


def _open(path: Path) -> bool:
    """Open a page in a graphical browser. A browser of the terminal would write over the dashboard."""
    if sys.platform == "darwin":
        opener = "open"
    elif os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        opener = "xdg-open"
    else:
        return False
    found = shutil.which(opener)
    if found is None:
        return False
    with suppress(OSError):
        subprocess.Popen(
            [found, str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        return True
    return False
