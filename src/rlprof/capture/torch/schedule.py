"""Which steps of a training are captured: wait, warm up, capture, and that again."""

from __future__ import annotations

from dataclasses import dataclass

WAIT, WARMUP, ACTIVE, DONE = "wait", "warmup", "active", "done"

EPOCH, ITERATION, ENV_STEP, MARK = "epoch", "iteration", "env_step", "mark"
STEPS = (EPOCH, ITERATION, ENV_STEP, MARK)
"""What a step is: one pass over a rollout's data, one turn of collect-and-update, one step of the environments, or what
the program marks itself."""

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
                raise ValueError(f"{name} is a whole number of at least {least}, not {value!r}")

    @property
    def cycle(self) -> int:
        return self.wait + self.warmup + self.active

    @property
    def needed(self) -> int:
        """Steps until all is captured."""
        return self.cycle * self.repeat

    def state(self, step: int) -> str:
        """What is done in this step, counted from 0."""
        if step >= self.needed:
            return DONE
        place = step % self.cycle
        return WAIT if place < self.wait else WARMUP if place < self.wait + self.warmup else ACTIVE

    def captured(self, ran: int) -> int:
        """Active steps among the first `ran`."""
        return sum(self.state(step) == ACTIVE for step in range(min(ran, self.needed)))

    def fitting(self, steps: int) -> Schedule | None:
        """One that comes to its end within so many steps: with less waiting first, then with fewer of the others. None
        where there is not even one to capture."""
        if steps < 1:
            return None
        repeat = max(1, min(self.repeat, steps // self.cycle))
        room = steps // repeat
        active = min(self.active, max(1, room - self.warmup))
        warmup = min(self.warmup, max(0, room - active))
        return Schedule(min(self.wait, room - active - warmup), warmup, active, repeat)

    @property
    def flags(self) -> str:
        """As the command line takes it."""
        repeated = f" --torch-profiler-repeat {self.repeat}" if self.repeat != 1 else ""
        return (
            f"--torch-profiler-wait {self.wait} --torch-profiler-warmup {self.warmup} "
            f"--torch-profiler-active {self.active}{repeated}"
        )


def steps_named(number: int, kind: str) -> str:
    return f"{number:,} {_NAMES[kind]}{'' if number == 1 else 's'}"


def announced(schedule: Schedule, kind: str, planned: int) -> str | None:
    """What to say at the start of a run of so many steps; None where all is well."""
    if planned >= schedule.needed:
        return None
    return (
        f"this run has {steps_named(planned, kind)}, and the torch capture needs {schedule.needed:,} "
        f"({_parts(schedule)}); {_remedy(schedule, planned)}"
    )


def stopped_early(schedule: Schedule, kind: str, ran: int) -> str | None:
    """What to say at the end of a run that had so many steps; None where all was captured."""
    if ran >= schedule.needed:
        return None
    captured = schedule.captured(ran)
    left = "no trace was written" if not captured else f"only {captured:,} of {schedule.active * schedule.repeat:,} "
    if captured:
        left += "active steps were captured"
    return (
        f"the run ended after {steps_named(ran, kind)}, and the torch capture needed {schedule.needed:,} "
        f"({_parts(schedule)}): {left}; {_remedy(schedule, ran)}"
    )


def _parts(schedule: Schedule) -> str:
    times = f", {schedule.repeat} times" if schedule.repeat != 1 else ""
    return f"wait {schedule.wait} + warmup {schedule.warmup} + active {schedule.active}{times}"


def _remedy(schedule: Schedule, steps: int) -> str:
    fitting = schedule.fitting(steps)
    return "train for longer" if fitting is None else f"{fitting.flags} would fit"
