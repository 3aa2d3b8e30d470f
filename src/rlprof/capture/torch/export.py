"""Writes a torch trace to a file. The file appears whole or not at all."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

SUFFIX = ".pt.trace.json.gz"
COMPRESSION_LEVEL = 3
"""Low, because the training waits for it."""


def file_name(training: str) -> str:
    """The kind of name that TensorBoard looks for: worker, time and suffix."""
    worker = re.sub(r"[^\w-]+", "-", training)
    return f"{worker}_{os.getpid()}.{time.time_ns() // 1_000_000}{SUFFIX}"


def export(ended: Any, path: Path) -> Path:
    """Write the trace of a torch profiler that has stopped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain, packed = (path.with_name(f".{path.name}.{os.getpid()}.{part}") for part in ("json", "part"))
    try:
        ended.export_chrome_trace(str(plain))
        with plain.open("rb") as text, gzip.open(packed, "wb", compresslevel=COMPRESSION_LEVEL) as file:
            shutil.copyfileobj(text, file, 1 << 20)
        packed.replace(path)
    finally:
        plain.unlink(missing_ok=True)
        packed.unlink(missing_ok=True)
    return path
