"""A torch trace as a file, there whole or not at all."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

SUFFIX = ".pt.trace.json.gz"
LEVEL = 3
"""Of compression: the training waits for it."""


def file_name(training: str) -> str:
    """As TensorBoard looks for: a worker, a time, and what it is."""
    worker = re.sub(r"[^\w-]+", "-", training)
    return f"{worker}_{os.getpid()}.{time.time_ns() // 1_000_000}{SUFFIX}"


def export(ended: Any, path: Path) -> Path:
    """Write what a torch profiler that has stopped has recorded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain, packed = (path.with_name(f".{path.name}.{os.getpid()}.{part}") for part in ("json", "part"))
    try:
        ended.export_chrome_trace(str(plain))
        with plain.open("rb") as text, gzip.open(packed, "wb", compresslevel=LEVEL) as file:
            shutil.copyfileobj(text, file, 1 << 20)
        packed.replace(path)
    finally:
        plain.unlink(missing_ok=True)
        packed.unlink(missing_ok=True)
    return path
