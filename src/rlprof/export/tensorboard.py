"""A session as TensorBoard scalars: speed and shares of the wall time, with the iteration as the step."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from rlprof.analysis.resources import mean_of, peak_of
from rlprof.analysis.series import series
from rlprof.render.scalars import Scalars
from rlprof.session.reader import IterationRow, Session
from rlprof.session.records import Sample

POINTS = 10_000
"""With more iterations, neighbours are merged. TensorBoard itself draws a thousand points."""

Scalar = tuple[int, int, str, float]
"""Time on the ledger's clock, step, tag, value."""


def write_tensorboard(session: Session, folder: Path) -> Path:
    """Write an event file into a folder and return its path. A second export of the session replaces the first."""
    scalars = sorted([*_iterations(session), *_samples(session)], key=lambda scalar: scalar[0])
    info = session.info
    # One file name per session: TensorBoard would draw two files of one session over each other.
    host = re.sub(r"[^\w-]+", "-", info.host) or "host"
    path = folder / f"events.out.tfevents.{info.started // 10**9:010d}.{host}.{info.pid}.rlprof"
    file = Scalars(path, info.started / 1e9)
    try:
        for time, step, tag, value in scalars:
            file.write((info.started + time - info.origin) / 1e9, step, tag, value)
    finally:
        file.close()
    return path


def _iterations(session: Session) -> Iterator[Scalar]:
    """Scalars at the end of each iteration. Merged iterations give their mean at the end of the last."""
    iterations = session.iterations()
    ends = {iteration.last + 1: iteration.end for iteration in iterations}
    points = series(session, session.snapshot(), iterations, POINTS)
    for place in range(len(points)):
        step, wall, steps = points.last[place], points.wall_ns[place], points.steps[place]
        if not wall:
            continue
        time = ends[step]
        yield time, step, "rlprof_speed/seconds_per_iteration", wall / 1e9 / (step - points.first[place] + 1)
        if steps > 0:
            yield time, step, "rlprof_speed/steps_per_second", steps / wall * 1e9
        for operation, values in points.ledger_ns.items():
            yield time, step, f"rlprof_share_percent/{operation}", 100 * values[place] / wall


def _samples(session: Session) -> Iterator[Scalar]:
    """One point per iteration for its samples, at the last sample. Without iterations the step is a second."""
    iterations = session.iterations()
    starts = [iteration.start for iteration in iterations]

    def step(sample: Sample) -> int:
        if not iterations:
            return (sample.time - session.info.origin) // 10**9
        return _iteration_at(sample.time, iterations, starts)

    for number, group in groupby(session.samples(), key=step):
        samples = list(group)
        for tag, value in (
            ("rlprof_system/cpu_percent_of_a_core", mean_of(samples, "cpu")),
            ("rlprof_system/children_cpu_percent_of_a_core", mean_of(samples, "children_cpu")),
            ("rlprof_system/machine_cpu_percent", mean_of(samples, "machine_cpu")),
            ("rlprof_system/rss_bytes", peak_of(samples, "rss")),
            ("rlprof_system/children_rss_bytes", peak_of(samples, "children_rss")),
            ("rlprof_system/device_busy_percent", mean_of(samples, "device_busy")),
            ("rlprof_system/device_memory_bytes", peak_of(samples, "device_memory")),
        ):
            if value is not None:
                yield samples[-1].time, number, tag, value


def _iteration_at(time: int, iterations: list[IterationRow], starts: list[int]) -> int:
    """The iteration that was running just before a time, or the last one before it; 0 before the first."""
    place = bisect_left(starts, time) - 1
    return iterations[place].last + 1 if place >= 0 else 0
