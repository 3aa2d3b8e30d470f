"""Traces for tests: synthetic ones, and real ones if they are available."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

# RLPROF_TEST_TRACES: folder of the real traces, for a copy of the tree.
SHARED = Path(os.environ.get("RLPROF_TEST_TRACES") or Path(__file__).parent.parent.parent / "shared" / "traces")
REAL = sorted(SHARED.glob("*.json.gz"))
LARGE = 1_000_000
"""Maximum size of a packed trace in bytes. Larger ones are for `make test-long`."""


def real_traces(*names):
    """A parameter for each real trace, or one that skips if there are none."""
    found = [
        pytest.param(path, marks=pytest.mark.long if path.stat().st_size > LARGE else ())
        for path in REAL
        if not names or path.name.split(".")[0] in names
    ]
    missing = pytest.param(None, marks=pytest.mark.skip(reason=f"no real traces in {SHARED.name}/ beside this clone"))
    return pytest.mark.parametrize("path", found or [missing], ids=lambda path: path.name.split(".")[0] if path else "")


def unpacked(path):
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def event(name="op", ts=0, dur=1, cat="cpu_op", pid=1, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def written(folder, events, name="made.pt.trace.json", **header):
    path = Path(folder) / name
    data = json.dumps({"schemaVersion": 1, **header, "traceEvents": events}).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


CORES = tuple(os.environ.get("RLPROF_TEST_CORES", "c python").split())
