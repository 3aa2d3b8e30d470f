"""Sessions with a timeline for the tests of exports. Every figure is known, and the names need escaping."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from fakes import Actor, Fake
from sessions import INFO, Written, sample

from rlprof import SpanCost
from rlprof.session.reader import Session

ORIGIN = 1_000
STARTED = INFO.started
MS = 1_000_000

NASTY = ('<script>alert("x")</script>', "it's, a;\ttab", "two\nlines", "環境 größe", "=1+1", "</b>&amp;")
SETTINGS = {"lr": 0.1, "env": "CartPole", "fast": True, "batch": 64, "none": None}


class Kept(Written):
    """A session whose recording began at ORIGIN and keeps `timeline` spans between two flushes."""

    def __init__(self, folder: Path, timeline: int = 1024, cost: SpanCost | None = None) -> None:
        super().__init__(folder, Fake("auto", start=ORIGIN), cost)
        self.writer._put("info", replace(INFO, name='run "<b>"', origin=ORIGIN, settings=SETTINGS))
        self.fake.profiler.enable(timeline)
        self.profile = self.fake.profile
        self.tick = self.fake.tick
        self.iteration = self.fake.profiler.iteration

    def cross(self, first: str, second: str, ticks: int) -> None:
        """Two spans that do not end in reverse order of their start."""
        one, other = self.profile(first), self.profile(second)
        one.__enter__()
        self.tick(ticks)
        other.__enter__()
        self.tick(ticks)
        one.__exit__(None, None, None)
        self.tick(ticks)
        other.__exit__(None, None, None)

    def session(self) -> Session:
        return Session(self.end())


def exported(session: Session, write: Callable[[Session, BinaryIO], Any]) -> tuple[bytes, Any]:
    """The file that an export writes, and the remark that it returns."""
    file = io.BytesIO()
    with session:
        remark = write(session, file)
    return file.getvalue(), remark


STEP = 4 * MS
COLLECT = 6 * MS
BACKWARD = 20 * MS
ITERATION = COLLECT + len(NASTY) * MS + BACKWARD + 2 * MS
SPANS = 3 * (len(NASTY) + len(("collect", "env_step", "env_reset", "update", "backward", "clip")))


def training(folder: Path, timeline: int = 1024, cost: SpanCost | None = None) -> Session:
    """Three iterations. In each, the driver waits 6 ms for an environment that works for 4 ms, does six operations of
    1 ms whose names need escaping, and updates for 21 ms, 20 of them in `backward`. 1 ms is outside of any span."""
    kept = Kept(folder, timeline, cost)
    env = Actor('env "0" <b>\n')
    for i in range(3):
        with kept.iteration():
            step, reset = kept.profile("env_step"), kept.profile("env_reset")
            with kept.profile("collect", wait=True):
                env.enter(step)
                kept.tick(STEP)
                env.exit(step)
                env.enter(reset)
                env.exit(reset)
                kept.tick(COLLECT - STEP)
            for name in NASTY:
                kept.work(name, MS)
            with kept.profile("update"):
                kept.work("backward", BACKWARD)
                kept.tick(MS)
                kept.work("clip", 0)
            kept.tick(MS)
            kept.fake.profiler.add_steps(100 * (i + 1))
            kept.fake.profiler.add_episodes(1)
        kept.samples = [sample(kept.fake.wall, cpu=90.0 + i if i else None, rss=(i + 1) * 10**6)]
        kept.flush()
    env.end()
    return kept.session()
