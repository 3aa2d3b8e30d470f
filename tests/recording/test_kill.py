"""After kill -9 at any moment, the session can be opened and lacks about a second at most."""

from __future__ import annotations

import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import pytest
from sessions import facts_of, rlprof, start_program

from rlprof.analysis.facts import KILLED
from rlprof.session.reader import Session

KILLS = 50

TRAINING = """
import mmap, os, struct, sys, time
from rlprof import get_profiler, profile, record

profiler = get_profiler()
beat = mmap.mmap(os.open(os.environ["BEAT"], os.O_RDWR), 16)
recording = record("killed", timeline=1 << 16)
iterations = 0
while True:
    with profiler.iteration():
        with profile("env_step"):
            sum(range(300))
        with profile("update"), profile("backward"):
            sum(range(300))
        profiler.add_steps(8)
    iterations += 1
    struct.pack_into("=qq", beat, 0, time.time_ns(), iterations)
"""


def kill_one(folder: Path, after: float) -> tuple[float, Path]:
    """Seconds of training that the session lacks, and its folder."""
    folder.mkdir()
    beat = folder / "beat"
    beat.write_bytes(bytes(16))
    process = start_program(TRAINING, folder / "runs", BEAT=str(beat))
    try:
        deadline = time.monotonic() + 30
        while beat.read_bytes() == bytes(16):  # it trains from here on
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(after)
    finally:
        process.kill()
        process.communicate()
    last = int.from_bytes(beat.read_bytes()[:8], sys.byteorder)
    (session,) = (folder / "runs").iterdir()
    with Session(session) as opened:
        return (last - opened.state.written) / 1e9, session


@pytest.mark.long
def test_fifty_killed_trainings_leave_sessions_that_lack_a_second(tmp_path):
    chance = random.Random(5)
    moments = [chance.uniform(0.3, 2.6) for _ in range(KILLS)]
    with ThreadPoolExecutor(3) as pool:
        killed = list(pool.map(lambda i: kill_one(tmp_path / str(i), moments[i]), range(KILLS)))
    # A flush per second. One that has to wait for a core comes later, so most must be in time, and none far off.
    assert median(lost for lost, _ in killed) < 1.2
    assert max(lost for lost, _ in killed) < 10
    for _, session in killed:
        facts = facts_of(session)  # checks every sum
        assert facts.ended == KILLED
        calls = facts.operation("env_step").calls if facts.operations else 0
        assert 0 <= 8 * calls - facts.progress.steps <= 8  # the one step that was under way
    _, session = killed[0]
    shown = rlprof("report", session).stdout
    assert ", killed: figures are as of its last flush" in shown
    assert "env_step" in shown
