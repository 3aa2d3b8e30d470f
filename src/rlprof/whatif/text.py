"""A prediction as text and JSON: the requested speedup, the experiment that verifies it, and the ranking."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import msgspec
from rich.console import Console

from rlprof.analysis.figures import as_percent, many, rate
from rlprof.analysis.inference import Interval
from rlprof.analysis.prediction import Prediction, Priority, WhatIf
from rlprof.analysis.topology import Topology
from rlprof.render.intervals import faster_or_slower, shown
from rlprof.render.layout import Column, Layout, plain
from rlprof.whatif.verification import Verified

SCHEMA_VERSION = 1
MOST = 20
"""Most lines of the ranking."""


def to_text(found: WhatIf, verified: Verified | None = None, width: int = 100) -> str:
    return plain(partial(render, found, verified), width)


def render(found: WhatIf, verified: Verified | None, console: Console) -> None:
    layout = Layout(console)
    if found.asked is not None:
        layout.line(sentence(found.asked, found), "bold")
        if found.asked.bound:
            layout.line(f"The limit would then be {found.asked.bound}.")
    if verified is not None:
        layout.heading("Prediction and experiment")
        for line in experiment_lines(verified):
            layout.line(line)
    layout.heading("How much faster the training would be with a faster operation, including all that it calls")
    ranking = found.ranking[:MOST]
    layout.table("operation", [one.operation for one in ranking], ranking, _COLUMNS)
    if len(found.ranking) > MOST:
        layout.line(f"Not shown: {many(len(found.ranking) - MOST, 'operation')} that would bring less.")
    layout.line(
        f"{model_of(found.topology)} Computed from {many(found.iterations, 'iteration')} of this run, with 95%"
        " confidence intervals. Another run may be faster or slower as a whole. --verify checks a prediction on the"
        " real training."
    )


def to_json(found: WhatIf, verified: Verified | None = None) -> str:
    content = {"schema_version": SCHEMA_VERSION, **asdict(found), "verified": verified and asdict(verified)}
    return msgspec.json.format(msgspec.json.encode(content)).decode() + "\n"


def sentence(asked: Prediction, found: WhatIf) -> str:
    """`With env_step 2x as fast, the training would make 1,235 [1,210, 1,261] steps per second instead of 1,000. It
    would be faster by 23.5% [21.0, 26.1].`"""
    what = " and ".join(f"{name} {speed_of(part)}" for name, part in asked.saving.items())
    gain = f"would be {faster_or_slower(asked.gain)}."
    if asked.rate is None or found.rate is None:
        return f"With {what}, the training {gain}"
    steps = f"{rate_of(asked.rate)} steps per second instead of {rate(found.rate.estimate)}"
    return f"With {what}, the training would make {steps}. It {gain}"


def rate_of(interval: Interval) -> str:
    """`1,235 [1,210, 1,261]`."""
    if interval.low is None or interval.high is None:
        return rate(interval.estimate)
    return f"{rate(interval.estimate)} [{rate(interval.low)}, {rate(interval.high)}]"


def speed_of(part: float) -> str:
    """The speedup that leaves this part of the time: `2x as fast`, `taking no time`."""
    return f"{1 / part:g}x as fast" if part else "taking no time"


def model_of(how: Topology) -> str:
    """The model that was used, and why."""
    if how.model == "serial":
        return "One thread does all the work, so a saving is never hidden behind other work."
    lanes = ", ".join(f"{many(group.lanes, group.kind)} ({group.name})" for group in how.groups)
    limits = {group.limit for group in how.groups if group.limit} | ({how.limit} if how.limit else set())
    sharing = f", which share {' and '.join(sorted(limits))}" if limits else ""
    if how.model == "pool":
        return f"The driver waits for {lanes}{sharing}."
    return f"{lanes} work beside the driver{sharing}; the slowest sets the pace."


def experiment_lines(verified: Verified) -> list[str]:
    lines = [f"Predicted: {faster_or_slower(verified.predicted)}."]
    if verified.experiment is not None:
        floor = " Then something else is the limit." if verified.at_floor else ""
        lines.append(f"By experiment: {faster_or_slower(verified.experiment)}.{floor}")
    for one in verified.experiments:
        if one.cost is not None:
            how = "sleeping" if one.slept > 0.5 else "computing with the GIL" if one.held > 0.5 else "computing"
            measured = f"measured by slowing it down by 50 and 100% ({how}) in {many(one.blocks, 'block')}"
            lines.append(f"{one.operation} costs {shown(one.cost)} of an iteration, {measured}.")
    lines.append(verified.verdict)
    return lines


_COLUMNS: tuple[Column[Priority], ...] = (
    Column("2x: faster by", 22, lambda one: shown(one.twice.gain)),
    Column("free: faster by", 24, lambda one: shown(one.free.gain), dispensable=2),
    Column("share", 6, lambda one: as_percent(one.share), dispensable=1),
    Column("limit if free", 16, lambda one: one.free.bound[:16], dispensable=4),
    Column("includes", 28, lambda one: _few(one.holds), dispensable=3),
)


def _few(names: tuple[str, ...]) -> str:
    text = ", ".join(names)
    return text if len(text) <= 28 else f"{text[:25].rpartition(',')[0] or text[:25]}, ..."
