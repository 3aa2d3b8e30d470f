"""A real terminal for tests: tmux with a socket of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

RLPROF = str(Path(sys.executable).with_name("rlprof"))
SECONDS = 90

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """One window of tmux that runs a shell."""

    def __init__(self, folder: Path, width: int, height: int, **variables: str) -> None:
        self._socket = str(folder / "tmux")
        others = ("RLPROF", "TMUX", "COLUMNS", "LINES")
        left = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        environment = left | {"RLPROF_DIR": str(folder / "sessions"), "PS1": "$ ", "LC_ALL": "C.UTF-8", **variables}
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(folder),
            "sh", "-i", environment=environment,
        )  # fmt: skip

    def _tmux(self, *words: str, environment: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env=environment,
        )
        return done.stdout

    def run(self, words: Sequence[object]) -> None:
        """Run `rlprof WORDS`, and print its exit code afterwards."""
        line = shlex.join([RLPROF, *map(str, words)])
        self._tmux("send-keys", "-l", f"clear; {line}; echo code=$?=")
        self._tmux("send-keys", "Enter")

    def press(self, *keys: str) -> None:
        for key in keys:
            self._tmux("send-keys", key)

    def lines(self) -> list[str]:
        return self._tmux("capture-pane", "-p").splitlines()

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    def wait_for(self, *texts: str, gone: Sequence[str] = ()) -> str:
        """The screen, once it has all of these texts and none of those that must be gone."""
        deadline = time.monotonic() + SECONDS
        while True:
            shown = self.text
            if all(text in shown for text in texts) and not any(text in shown for text in gone):
                return shown
            assert time.monotonic() < deadline, f"{texts} did not appear:\n{shown}"
            time.sleep(0.05)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)
