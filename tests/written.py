"""Sessions written from a clock that the test moves, so that every figure in them is known."""

from __future__ import annotations

from pathlib import Path

from fakes import Actor, Fake

from rlprof import SpanCost
from rlprof.session.info import Info
from rlprof.session.reader import Session
from rlprof.session.records import Batch, Mark, Sample
from rlprof.session.writer import SessionWriter

ORIGIN = 1_000
STARTED = 1_700_000_000_000_000_000
MS = 1_000_000

NASTY = ('<script>alert("x")</script>', "it's, a;\ttab", "two\nlines", "環境 größe", "=1+1", "</b>&amp;")


def info(name: str = "written") -> Info:
    return Info(
        name, STARTED, ORIGIN, 77, ("python", "train.py"), "folder", "3.12.0", "Linux", "host-a", "cpu", 2, 10**9, "c",
        packages={"rlprof": "0.1.0"}, settings={"lr": 0.1, "env": "CartPole", "fast": True, "batch": 64, "none": None},
    )  # fmt: skip


class Written:
    """A profiler with its session."""

    def __init__(self, folder: Path, timeline: int = 1024, cost: SpanCost | None = None, name: str = "written") -> None:
        self.fake = Fake("auto", start=ORIGIN)
        self.fake.profiler.enable(timeline)
        self.profile = self.fake.profile
        self.tick = self.fake.tick
        self.folder = folder
        self.writer = SessionWriter(folder / "session.db", info(name))
        self._costs = [cost or SpanCost()]

    def work(self, operation: str, wall: int) -> None:
        with self.profile(operation):
            self.tick(wall)

    def flush(self, samples: list[Sample] | None = None, marks: list[Mark] | None = None) -> None:
        batch = Batch(self.fake.wall, {}, self._costs, samples=samples or [], marks=marks or [])
        batch.iterations, batch.gains = self.fake.profiler.drain_iterations()
        batch.events, batch.events_lost = self.fake.profiler.drain_timeline()
        batch.raw = self.fake.profiler._ledger.raw()
        self.writer.write(batch)

    def session(self) -> Session:
        self.fake.profiler.disable()
        self.flush()
        self.writer.end("finished")
        self.writer.close()
        return Session(self.folder)


def sample(time: int, cpu: float | None, rss: int, weight: int = 1) -> Sample:
    return Sample(time, weight, cpu, 0.0, 50.0, rss, 0, 0, 10**9, None, None, 1_000)


SPANS = 3 * (2 + 1 + len(NASTY) + 3)
"""In `training`."""

STEP = 4 * MS
COLLECT = 6 * MS
BACKWARD = 20 * MS


def training(folder: Path, timeline: int = 1024, cost: SpanCost | None = None) -> Session:
    """Three iterations. In each the driver waits 6 ms for an environment that works for 4, does six things of 1 ms with
    names that must be escaped, and updates for 20 ms and one more; 1 ms has no name. 28 + 6 ms in all."""
    written = Written(folder, timeline, cost, name='run "<b>"')
    env = Actor('env "0" <b>\n')
    for i in range(3):
        with written.fake.profiler.iteration():
            step, reset = written.profile("env_step"), written.profile("env_reset")
            with written.profile("collect", wait=True):
                env.enter(step)
                written.tick(STEP)
                env.exit(step)
                env.enter(reset)
                env.exit(reset)
                written.tick(COLLECT - STEP)
            for name in NASTY:
                written.work(name, MS)
            with written.profile("update"):
                written.work("backward", BACKWARD)
                written.tick(MS)
                written.work("clip", 0)
            written.tick(MS)
            written.fake.profiler.add_steps(100 * (i + 1))
            written.fake.profiler.add_episodes(1)
        written.flush([sample(written.fake.wall, None if i == 0 else 90.0 + i, (i + 1) * 10**6)])
    env.end()
    return written.session()


ITERATION = COLLECT + len(NASTY) * MS + BACKWARD + 2 * MS
