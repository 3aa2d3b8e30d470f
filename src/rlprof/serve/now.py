"""A frame as the page shows it: every figure as text, in the same form as in the report, and of a bounded size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.analysis.changes import Change
from rlprof.analysis.figures import count, duration, if_known, many, percent, rate, size
from rlprof.list.text import short_state
from rlprof.live.alerts import ALERT
from rlprof.live.frame import Frame, LaneNow, Part, Stuck, Usage
from rlprof.live.stuck import whole_seconds
from rlprof.render.html.markup import plain_name, prose, word_of
from rlprof.render.names import shorten
from rlprof.report.tree import OWN_CODE
from rlprof.session.records import Mark

MOST_PARTS = 7
MOST_LANES = 24
_MOST_CHANGES = 4
_MOST_MARKS = 6
_LANE_WIDTH = 20
"""Characters of a lane's name. Its middle is cut, because the numbers at the end of names differ."""
_WARNINGS = (ALERT, "warning", "stuck", "killed", "failed", "error")
"""Kinds of marks that are shown, also as the last word of a kind. Other marks only note what happened."""
_LEAST_SHARE = 0.5
"""Percent. A smaller operation has no bar."""


def now_of(frame: Frame) -> dict[str, Any]:
    """What the live strip shows, for the browser."""
    running = frame.is_running
    return {
        "state": short_state(frame.state),
        "running": running,
        "facts": _facts(frame),
        "speed": _speed(frame) if running else None,
        "usage": _usage(frame.usage) if running else [],
        "window": _window(frame),
        "parts": _parts(frame.parts) if running else [],
        "lanes": [_lane(lane) for lane in frame.lanes[:MOST_LANES]] if running else [],
        "hiddenLanes": frame.hidden_lanes + max(0, len(frame.lanes) - MOST_LANES),
        "changes": [_change(change) for change in frame.changes[:_MOST_CHANGES]],
        "alerts": [
            {"time": mark.time / 1e9, "kind": plain_name(mark.kind), "text": prose(mark.text)}
            for mark in [mark for mark in frame.marks if _warns(mark)][-_MOST_MARKS:]
        ],
        "stuck": None if frame.stuck is None else _stuck(frame.stuck),
        "problem": prose(frame.problem),
    }


def _warns(mark: Mark) -> bool:
    return mark.kind.rpartition("_")[2] in _WARNINGS


def _facts(frame: Frame) -> list[tuple[str, str]]:
    """The first line: names and figures."""
    done = f"{frame.iterations:,}"
    if frame.planned:
        done += f" of {frame.planned:,}"
    found = [("run time", duration(1e9 * frame.wall_s))]
    if frame.iterations or frame.planned:
        found.append(("iterations", done))
    if frame.steps:
        found.append(("steps", count(frame.steps)))
    if frame.episodes:
        found.append(("episodes", count(frame.episodes)))
    if frame.is_running:
        if frame.eta_s is not None:
            found.append(("left", duration(1e9 * frame.eta_s)))
        if frame.iteration_ns is not None:
            found.append(("per iteration", duration(frame.iteration_now_ns or frame.iteration_ns)))
            # Always there, because a figure that comes and goes would move what follows.
            found.append(("since the last one", if_known(duration, _times(1e9, frame.open_s)) or "-"))
    return found


def _speed(frame: Frame) -> dict[str, Any] | None:
    speed = frame.speed
    if speed.now is None and speed.mean is None:
        return None
    return {
        "unit": f"{speed.unit}s/s",
        "now": if_known(rate, speed.now) or "-",
        "mean": if_known(rate, speed.mean) or "-",
        "history": [round(value, 3) for value in speed.history],
        "meanValue": speed.mean,
    }


def _usage(usage: Usage) -> list[dict[str, Any]]:
    """One entry per resource that is known."""
    found: list[dict[str, Any]] = []
    if usage.cpu is not None:
        whole = usage.cpu + (usage.children_cpu or 0.0)
        remark = f"of one core, {usage.cores:,} available"
        if usage.machine_cpu is not None:
            remark += f"; machine {usage.machine_cpu:.0f}%"
        found.append(_gauge("CPU", f"{whole:,.0f}%", remark, usage.cpu_history))
    if usage.memory is not None:
        available = if_known(size, usage.memory_available)
        found.append(
            _gauge("memory", size(usage.memory), f"{available} available" if available else "", usage.memory_history)
        )
    if usage.gpu is not None or usage.gpu_memory is not None:
        busy = "-" if usage.gpu is None else f"{usage.gpu:.0f}%"
        found.append(_gauge("GPU", busy, if_known(size, usage.gpu_memory), ()))
    return found


def _gauge(what: str, value: str, remark: str, history: Sequence[float]) -> dict[str, Any]:
    return {
        "what": what,
        "value": value,
        "remark": remark,
        "history": [round(one, 1) if one < 1e6 else round(one) for one in history],
    }


def _window(frame: Frame) -> str:
    if not frame.window_ns:
        return ""
    over = f"the last {duration(frame.window_ns)}"
    return f"{over} ({many(frame.window_iterations, 'iteration')})" if frame.window_iterations else over


def _parts(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The places with the largest own time now or in the whole run, in the order of the tree."""
    sized = [(max(part.own_share, part.own_now or 0.0), place) for place, part in enumerate(parts)]
    largest = sorted(sized, reverse=True)[:MOST_PARTS]
    kept = sorted(place for share, place in largest if share >= _LEAST_SHARE)
    names = Counter(_name(parts[place]) for place in kept)
    return [_part(parts[place], names[_name(parts[place])] > 1) for place in kept]


def _name(part: Part) -> str:
    names = {UNATTRIBUTED: OWN_CODE, RLPROF: "rlprof itself"}
    own = names.get(part.operation) or plain_name(part.operation)
    return f"your code in {own}" if part.is_phase else own


def _part(part: Part, is_repeated: bool) -> dict[str, Any]:
    """One row. If another row has the same name, with the operation around it."""
    return {
        "name": _name(part),
        "where": plain_name(part.path[-2]) if is_repeated and len(part.path) > 1 else "",
        "category": word_of(part.category),
        "share": part.own_share,
        "now": part.own_now,
        "shareText": percent(part.own_share),
        "nowText": if_known(percent, part.own_now) or "-",
    }


def _lane(lane: LaneNow) -> dict[str, Any]:
    doing = plain_name(lane.doing[-1]) if lane.doing else ""
    whole = plain_name(f"driver ({lane.name})" if lane.on_driver and lane.kind == "thread" else lane.name)
    return {
        "name": shorten(whole, _LANE_WIDTH),
        "whole": whole,
        "kind": lane.kind,
        "alive": lane.alive,
        "doing": doing,
        "path": prose(" > ".join(map(plain_name, lane.doing[:12]))),
        "since": duration(1e9 * lane.since_s) if lane.since_s is not None else "",
        "waits": lane.waits,
        "waitsFor": [plain_name(name) for name in lane.waits_for],
        "busy": lane.busy,
        "busyText": "-" if lane.busy is None else f"{lane.busy:.0f}%",
    }


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value


def _change(change: Change) -> dict[str, str]:
    slower = change.ratio > 1
    how = f"takes {change.ratio:.2g}x what it took" if slower else f"is {1 / change.ratio:.2g}x as fast as"
    text = (
        f"{plain_name(change.operation)} {how} {duration(1e9 * change.ago_s)} ago: "
        f"{duration(change.before_ns)} per call then, {duration(change.now_ns)} now."
    )
    return {"kind": "slower" if change.ratio > 1 else "faster", "text": text}


def _stuck(stuck: Stuck) -> dict[str, Any]:
    return {
        "seconds": whole_seconds(stuck.seconds),
        "reason": prose(stuck.reason),
        "lanes": [_lane(lane) for lane in stuck.lanes[:MOST_LANES]],
    }
