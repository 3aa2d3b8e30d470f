"""Two views request a capture of the same running training: each gets a trace of its own."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from rlprof.capture.captures import PATIENCE, PAUSE, _Requested
from rlprof.capture.torch.capture import TorchCapture
from rlprof.trace.analysis.summarize import summarize
from rlprof.trace.read import read_trace

TRAINING = """
import time
from rlprof import get_profiler, profile, record

recording = record("run")
print(recording.folder, flush=True)
while True:
    with get_profiler().iteration(), profile("env_step"):
        time.sleep(0.01)
"""


def test_a_request_waits_for_the_capture_before_it_and_for_its_trace():
    capture = TorchCapture(step="mark")
    requested = _Requested(capture)
    capture._thread = 1  # the first step has begun
    assert all(requested.is_under_way() for _ in range(2 * PATIENCE))
    capture._failed = True  # it is over
    assert [requested.is_under_way() for _ in range(PAUSE + 1)] == [True] * PAUSE + [False]


def test_a_request_does_not_wait_forever_for_a_capture_that_never_begins():
    requested = _Requested(TorchCapture(step="mark"))
    assert [requested.is_under_way() for _ in range(PATIENCE + 1)] == [True] * PATIENCE + [False]


@pytest.mark.long
def test_each_of_two_requests_gets_its_own_trace(tmp_path):
    pytest.importorskip("torch")
    command = [sys.executable, "-c", TRAINING]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            folder = tmp_path / process.stdout.readline().strip()
            captures = []
            for active in (2, 5):
                words = ["capture", folder, "--step", "iteration", "--active", active]
                captures.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "rlprof", *map(str, words)], stdout=subprocess.PIPE, text=True
                    )
                )
                end = time.monotonic() + 60
                while not (folder / "requests").exists() and active == 2 and time.monotonic() < end:
                    time.sleep(0.01)
            paths = [capture.communicate(timeout=240)[0].strip() for capture in captures]
        finally:
            process.kill()
    assert [len(summarize(read_trace(path)).steps) for path in paths] == [2, 5]
    assert not (folder / "requests").exists()
