"""Which steps of a training are captured: wait, warm up, capture, and repeat."""

from __future__ import annotations

from dataclasses import dataclass

WAIT, WARMUP, ACTIVE, DONE = "wait", "warmup", "active", "done"

EPOCH, ITERATION, ENV_STEP, MARK = "epoch", "iteration", "env_step", "mark"
STEPS = (EPOCH, ITERATION, ENV_STEP, MARK)
"""What a step is: one pass over a rollout's data, one rollout and its update, one step of the environments, or a step
that the program marks itself."""

_NAMES = {EPOCH: "epoch", ITERATION: "iteration", ENV_STEP: "environment step", MARK: "marked step"}


@dataclass(frozen=True)
class Schedule:
    wait: int = 1
    warmup: int = 1
    active: int = 3
    repeat: int = 1

    def __post_init__(self) -> None:
        for name, least in (("wait", 0), ("warmup", 0), ("active", 1), ("repeat", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")

    @property
    def cycle(self) -> int:
        return self.wait + self.warmup + self.active

    @property
    def needed(self) -> int:
        """Steps until everything is captured."""
        return self.cycle * self.repeat

    def state(self, step: int) -> str:
        """The state in this step, counted from 0."""
        if step >= self.needed:
            return DONE
        place = step % self.cycle
        return WAIT if place < self.wait else WARMUP if place < self.wait + self.warmup else ACTIVE

    def captured(self, ran: int) -> int:
        """Active steps among the first `ran`."""
        return sum(self.state(step) == ACTIVE for step in range(min(ran, self.needed)))

    def fitting(self, steps: int) -> Schedule | None:
        """A schedule that fits into so many steps: with less waiting, and if needed less of the rest. None if there is
        no step at all."""
        if steps < 1:
            return None
        repeat = max(1, min(self.repeat, steps // self.cycle))
        room = steps // repeat
        active = min(self.active, max(1, room - self.warmup))
        warmup = min(self.warmup, max(0, room - active))
        return Schedule(min(self.wait, room - active - warmup), warmup, active, repeat)

    @property
    def flags(self) -> str:
        """The options of the command line for this schedule."""
        repeated = f" --torch-profiler-repeat {self.repeat}" if self.repeat != 1 else ""
        return (
            f"--torch-profiler-wait {self.wait} --torch-profiler-warmup {self.warmup} "
            f"--torch-profiler-active {self.active}{repeated}"
        )


def steps_named(number: int, kind: str) -> str:
    return f"{number:,} {_NAMES[kind]}{'' if number == 1 else 's'}"


def announced(schedule: Schedule, kind: str, planned: int) -> str | None:
    """Warning at the start of a run with so many steps; None if they are enough."""
    if planned >= schedule.needed:
        return None
    return (
        f"this run has {steps_named(planned, kind)}, but the torch capture needs {schedule.needed:,} "
        f"({_parts(schedule)}). {_remedy(schedule, planned)}"
    )


def stopped_early(schedule: Schedule, kind: str, ran: int) -> str | None:
    """Warning at the end of a run that had so many steps; None if everything was captured."""
    if ran >= schedule.needed:
        return None
    captured, wanted = schedule.captured(ran), schedule.active * schedule.repeat
    left = f"only {captured:,} of {wanted:,} active steps were captured" if captured else "no trace was written"
    return (
        f"the run ended after {steps_named(ran, kind)}, but the torch capture needed {schedule.needed:,} "
        f"({_parts(schedule)}): {left}. {_remedy(schedule, ran)}"
    )


def _parts(schedule: Schedule) -> str:
    times = f", {schedule.repeat} times" if schedule.repeat != 1 else ""
    return f"wait {schedule.wait} + warmup {schedule.warmup} + active {schedule.active}{times}"


def _remedy(schedule: Schedule, steps: int) -> str:
    fitting = schedule.fitting(steps)
    return "Train for longer" if fitting is None else f"These options would fit: {fitting.flags}"
