"""Sessions with a timeline for tests of exports. Every figure is known, and names need escaping."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
    """A session that began at ORIGIN and keeps a number of spans between two flushes."""

    def __init__(self, folder: Path, timeline: int = 1024, cost: SpanCost | None = None) -> None:
        super().__init__(folder, Fake("auto", start=ORIGIN), cost)
        self.writer._put("info", replace(INFO, name='run "<b>"', origin=ORIGIN, settings=SETTINGS))
        self.fake.profiler.enable(timeline)
        self.profile = self.fake.profile
        self.tick = self.fake.tick
        self.iteration = self.fake.profiler.iteration

    def session(self) -> Session:
        return Session(self.end())


STEP = 4 * MS
COLLECT = 6 * MS
BACKWARD = 20 * MS
ITERATION = COLLECT + len(NASTY) * MS + BACKWARD + 2 * MS
SPANS = 3 * (len(NASTY) + len(("collect", "env_step", "env_reset", "update", "backward", "clip")))


def training(folder: Path, timeline: int = 1024, cost: SpanCost | None = None) -> Session:
    """Three iterations. In each the driver waits 6 ms for an environment that works for 4 ms, has six spans of 1 ms
    with names that need escaping, and updates for 20 ms and 1 ms more. 1 ms is in no span."""
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
