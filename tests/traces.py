"""Traces to read: small ones written by a test, one that torch records here, and real ones of other machines."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# The folder with traces of other machines. RLPROF_TEST_TRACES names it for a copy of the tree.
SHARED = Path(os.environ.get("RLPROF_TEST_TRACES") or Path(__file__).parent.parent.parent / "shared" / "traces")
REAL = sorted(SHARED.glob("*.json.gz"))
RECORDED = Path("cpu_recorded_here.pt.trace.json.gz")
"""Stands for the trace of the fixture `recorded_trace`."""
LARGE = 1_000_000
"""Size of a gzipped trace in bytes. Larger ones are for `make test-long`."""

STEPS, LAYERS, TRAINING = 3, 2, """
import sys, torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

torch.manual_seed(1)
torch.set_num_threads(1)
network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=1, warmup=1, active=3),
    on_trace_ready=lambda profiler: profiler.export_chrome_trace(sys.argv[1]),
) as profiler:
    for step in range(5):
        with record_function("policy_forward"):
            loss = network(torch.ones(16, 4)).square().mean()
        with record_function("update"):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        profiler.step()
"""  # fmt: skip


def record_trace(path: Path) -> None:
    """Record STEPS steps of a training with LAYERS layers with torch.profiler, in a process without sanitizers."""
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PYTHONMALLOC")}
    subprocess.run([sys.executable, "-c", TRAINING, str(path)], env=environment, capture_output=True, check=True)


def real_traces(*names):
    """Parametrizes a test with the path of each real trace, or of those with these names. Without names, one of them is
    recorded here, so that the test never lacks a trace."""
    found = [] if names else [pytest.param(RECORDED)]
    found += [
        pytest.param(path, marks=pytest.mark.long if path.stat().st_size > LARGE else ())
        for path in REAL
        if not names or path.name.split(".")[0] in names
    ]
    missing = pytest.param(None, marks=pytest.mark.skip(reason=f"no real traces in {SHARED.name}/ beside this clone"))
    return pytest.mark.parametrize(
        "path", found or [missing], ids=lambda path: path.name.split(".")[0] if path else "", indirect=True
    )


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
