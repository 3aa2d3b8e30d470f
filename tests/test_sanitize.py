"""`make sanitize` shows what it finds: defects are planted in a copy of the C core."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")]


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("address", ["heap-buffer-overflow", "in planted_overflow", "leak of 64 byte", "in planted_leak"]),
        ("thread", ["data race", "planted_races"]),
    ],
)
def test_planted_defects_are_shown_and_end_it_with_1(kind, shown):
    done = subprocess.run(
        [str(ROOT / "tools" / "sanitize"), sys.executable, kind, "--plant"],
        check=False, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    for text in shown:
        assert text in done.stdout
