"""Conditions of alerts: `steps_per_second < 80% of first hour`, `memory > 20GB`, `stuck`.

A condition compares a figure of the running training with a value, or with the same figure earlier in the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rlprof.analysis.figures import percent, rate, size
from rlprof.errors import RlprofError
from rlprof.live.frame import Frame

_SIZES = {"kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}
_TIMES = {"s": 1.0, "second": 1.0, "min": 60.0, "m": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a frame. `of` returns None where it is unknown."""

    of: Callable[[Frame], float | None]
    shown: Callable[[float], str]
    units: Mapping[str, float]
    hold_s: float
    """How long a condition must hold without a break before it is reported: a single slow iteration is no alert."""
    may_be_relative: bool = False


def _seconds(value: float) -> str:
    return f"{value:.3g} s"


METRICS = {
    "steps_per_second": Metric(
        lambda frame: frame.speed.now if frame.speed.unit == "step" else None, rate, {"": 1.0}, 20, True
    ),
    "iterations_per_second": Metric(
        lambda frame: (
            frame.window_iterations / (frame.window_ns / 1e9) if frame.window_iterations and frame.window_ns else None
        ),
        rate,
        {"": 1.0},
        20,
        True,
    ),
    "memory": Metric(lambda frame: frame.usage.memory, size, _SIZES, 3, True),
    "memory_available": Metric(lambda frame: frame.usage.memory_available, size, _SIZES, 3),
    "gpu_memory": Metric(lambda frame: frame.usage.gpu_memory, size, _SIZES, 3),
    "gpu": Metric(lambda frame: frame.usage.gpu, percent, {"": 1.0, "%": 1.0}, 60),
    "cpu": Metric(
        lambda frame: None if frame.usage.cpu is None else frame.usage.cpu + (frame.usage.children_cpu or 0.0),
        percent, {"": 1.0, "%": 1.0}, 60,
    ),
    "seconds_since_iteration": Metric(lambda frame: frame.open_s, _seconds, {"": 1.0, **_TIMES}, 0),
}  # fmt: skip
"""By name. CPU is in percent of one core, of the training with its worker processes; so is its memory."""
EVENTS = ("stuck", "killed", "failed")
"""Conditions without a value."""

_CONDITION = re.compile(r"(\w+)\s*(<=|>=|<|>)\s*(\d+\.?\d*(?:e\d+)?)\s*(%|[a-z]*)(?:\s+of\s+(.+))?", re.IGNORECASE)
_FIRST = re.compile(r"(?:the\s+)?first\s+(\d+\.?\d*)?\s*([a-z]+?)s?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Condition:
    text: str
    """As it was given."""
    metric: str
    """A key of METRICS, or one of EVENTS."""
    above: bool = False
    value: float = 0.0
    first_s: float | None = None
    """The value is a fraction of the figure in so many first seconds of the training."""

    @property
    def hold_s(self) -> float:
        return METRICS[self.metric].hold_s if self.metric in METRICS else 0.0

    def found(self, frame: Frame, reference: float | None = None) -> str | None:
        """What is wrong, as one sentence without its end. None if the condition does not hold or cannot be known.

        reference: the figure in the first seconds of the training, if `first_s` is set.
        """
        if self.metric in EVENTS:
            return self._event(frame)
        metric = METRICS[self.metric]
        now = metric.of(frame) if frame.is_running else None
        limit = self.value if self.first_s is None else None if reference is None else self.value * reference
        if now is None or limit is None or not (now > limit if self.above else now < limit):
            return None
        name = self.metric.replace("_", " ")
        where = "above" if self.above else "below"
        if self.first_s is None or reference is None:
            return f"{name} is {metric.shown(now)}, {where} {metric.shown(limit)}"
        share = f"{100 * self.value:.3g}% of the {metric.shown(reference)} at first"
        return f"{name} is {metric.shown(now)}, {where} {metric.shown(limit)} ({share})"

    def _event(self, frame: Frame) -> str | None:
        if self.metric == "stuck":
            return None if frame.stuck is None else f"the training is stuck: {frame.stuck.reason.rstrip('.')}"
        if self.metric == "killed":
            return "the training was killed" if frame.state == "killed" else None
        good = frame.is_running or frame.state in ("finished", "killed", "exit 0")
        return None if good else f"the training failed: {frame.state}"


def parse(text: str) -> Condition:
    """Raises RlprofError for anything that is not a condition."""
    stripped = " ".join(text.split())
    if stripped in EVENTS:
        return Condition(stripped, stripped)
    found = _CONDITION.fullmatch(stripped)
    if found is None:
        examples = "`memory > 20GB`, `steps_per_second < 80% of first hour` or `stuck`"
        raise RlprofError(f"`{text}` is not a condition. Write {examples}.")
    name, sign, number, unit, base = found[1], found[2], float(found[3]), found[4].lower(), found[5]
    metric = METRICS.get(name)
    if name in EVENTS:
        raise RlprofError(f"`{name}` in `{text}` is compared with nothing. Write `{name}` alone.")
    if metric is None:
        raise RlprofError(f"`{name}` in `{text}` is no figure. Choose one of {', '.join((*METRICS, *EVENTS))}.")
    if base is None:
        if unit not in metric.units:
            known = ", ".join(unit.upper() if unit in _SIZES else unit for unit in metric.units if unit) or "none"
            wrong = f"`{unit}` in `{text}` is no unit of {name}" if unit else f"`{text}` needs a unit"
            raise RlprofError(f"{wrong}. Units of {name}: {known}.")
        return Condition(stripped, name, ">" in sign, number * metric.units[unit])
    if unit != "%" or not metric.may_be_relative:
        allowed = ", ".join(name for name, metric in METRICS.items() if metric.may_be_relative)
        raise RlprofError(f"`of {base}` in `{text}` needs a percentage of {allowed}.")
    return Condition(stripped, name, ">" in sign, number / 100, _first(base, text))


def _first(base: str, text: str) -> float:
    found = _FIRST.fullmatch(base.strip())
    unit = None if found is None else _TIMES.get(found[2].lower())
    seconds = float(found[1] or 1) * unit if found is not None and unit is not None else 0.0
    if seconds <= 0:
        raise RlprofError(f"`of {base}` in `{text}` is no time. Write `of first hour` or `of first 10 min`.")
    return seconds
