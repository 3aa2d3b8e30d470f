"""The top of the dashboard: how fast the training is, how far, and how long it still takes."""

from __future__ import annotations

import re

from rich.text import Text

from rlprof.analysis.facts import RUNNING
from rlprof.analysis.figures import count, duration, many, percent, rate
from rlprof.live.frame import Frame, LaneNow
from rlprof.live.stuck import LONGEST_NAME, inside_s, whole_seconds
from rlprof.render.names import bounded
from rlprof.top.drawing import Panel, curve, fit, joined, name_of, progress, wrapped
from rlprof.top.look import Look
from rlprof.top.view import View

LATE_SECONDS = 5.0
"""Age of the figures that is mentioned. They are a second old at most while all is well."""
LEAST_CURVE = 8
MOST_PROGRESS = 30


def header(frame: Frame, view: View, width: int, look: Look) -> Panel:
    """Two lines. The border above has the name and the state."""
    state, style = state_of(frame, view, look)
    lines = [_speed(frame, width, look), _far(frame, width, look)]
    room = max(8, width - len(state) - 8)
    return Panel(
        name_of(frame.name or "rlprof", room, look), [line for line in lines if line.plain.strip()], state, style
    )


def state_of(frame: Frame, view: View, look: Look) -> tuple[str, str]:
    """The state in a few words, and its style."""
    if view.paused and frame.is_running:
        return "paused, space goes on", "warn"
    mark = look.glyphs.running if frame.is_running else look.glyphs.ended
    state = f"{mark} {name_of(frame.state, 40, look)}"
    if frame.is_running and frame.age_s > LATE_SECONDS:
        return f"{state}, last figures {whole_seconds(frame.age_s)} ago", "warn"
    usual = frame.is_running or frame.state in ("finished", "ended")
    return state, "good" if usual else "warn"


def banners(frame: Frame, width: int, look: Look) -> list[Text]:
    """What is wrong, in lines of their own above everything else."""
    lines: list[str] = []
    if frame.stuck is not None:
        stuck = frame.stuck
        lines += wrapped(f"Stuck for {whole_seconds(stuck.seconds)}. {stuck.reason}", width - 3, 3, look)
        others = [lane for lane in stuck.lanes if not _is_named(lane, stuck.reason)]
        for lane in others[:2]:
            inside = " > ".join(name_of(name, 30, look) for name in lane.doing[-3:])
            seconds = inside_s(lane, stuck.seconds, age_of(frame))
            verb = "is in" if seconds is None else "has been in"
            since = f" for {whole_seconds(seconds)}" if seconds is not None else ""
            lines += wrapped(f"{name_of(lane.name, 40, look)} {verb} {inside}{since}.", width - 3, 1, look)
        if len(others) > 2:
            lines[-1] += f" {len(others) - 2:,} more."
    if frame.problem and (frame.written or not frame.is_running):  # a training that is starting is no problem
        lines += wrapped(frame.problem, width - 3, 2, look)
    return [fit(Text(f" ! {line}" if place == 0 else f"   {line}"), width, look) for place, line in enumerate(lines)]


def age_of(frame: Frame) -> float:
    """Seconds since the last flush. 0 on another machine, whose clock may differ."""
    return frame.age_s if frame.state == RUNNING else 0.0


def _is_named(lane: LaneNow, reason: str) -> bool:
    """The reason says where the lane is."""
    name = "driver" if lane.on_driver else re.escape(bounded(lane.name, LONGEST_NAME))
    return re.search(rf"(?<!\w){name}(?!\w)", reason) is not None


def _speed(frame: Frame, width: int, look: Look) -> Text:
    """`12,345 steps/s now   11,900 mean   ▁▂▄▅▆▇`."""
    speed = frame.speed
    unit = f"{speed.unit}s/s"
    left = Text()
    if frame.is_running and speed.now is not None:
        left.append(rate(speed.now), look.style("figure")).append(f" {unit} now", look.style("ink"))
        if speed.mean is not None:
            left.append(f"   {rate(speed.mean)} mean", look.style("muted"))
    elif speed.mean is not None:
        left.append(rate(speed.mean), look.style("figure")).append(f" {unit} mean", look.style("ink"))
    elif not frame.parts and frame.is_running:
        left.append("Waiting for the first figures", look.style("muted"))
    else:
        left.append("No steps or iterations counted yet" if frame.is_running else "No steps or iterations counted",
                    look.style("muted"))  # fmt: skip
    room = width - left.cell_len - 3
    if room < LEAST_CURVE or len(speed.history) < 2:
        return left
    return joined(left, Text(curve(speed.history, room, look.glyphs, least=0.0), look.style("curve")), width, look)


def _far(frame: Frame, width: int, look: Look) -> Text:
    """`iteration 41 of 100 ━━━━────── 41%   ran 2m14s, 3m12s left`."""
    sep = f" {look.glyphs.dot} "
    left = Text(style=look.style("ink"))
    planned = frame.planned
    if planned:
        left.append(f"iteration {frame.iterations:,} of {planned:,}")
    elif frame.iterations:
        left.append(many(frame.iterations, "iteration"))
    figures = [f"{'running' if frame.is_running else 'ran'} {duration(frame.wall_s * 1e9)}"]
    if frame.eta_s is not None and frame.is_running:
        figures.append(f"{duration(frame.eta_s * 1e9)} left")
    if frame.steps:
        figures.append(f"{count(frame.steps)} {'step' if frame.steps == 1 else 'steps'}")
    each = frame.iteration_now_ns if frame.is_running else frame.iteration_ns
    if each is not None:
        figures.append(f"{duration(each)} per iteration{'' if frame.is_running else ' (median)'}")
    if frame.episodes:
        figures.append(f"{count(frame.episodes)} {'episode' if frame.episodes == 1 else 'episodes'}")
    fraction = min(1.0, frame.iterations / planned) if planned else 0.0
    done = f" {percent(100 * fraction)}" if planned else ""
    least = left.cell_len + 3 + (LEAST_CURVE + len(done) + 1 if planned else 0)
    while len(figures) > 1 and least + len(sep.join(figures)) > width:
        del figures[-1]
    right = Text(sep.join(figures), look.style("muted"))
    room = min(MOST_PROGRESS, width - left.cell_len - right.cell_len - len(done) - 4)
    if planned and room >= LEAST_CURVE:
        left = Text.assemble(left, " ", progress(fraction, room, look), done)
    return joined(left, right, width, look) if left.plain else right
