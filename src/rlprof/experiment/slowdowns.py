"""Slows operations of a real training down by known amounts, and measures how much longer its iterations take.

One process runs, and its slowdown changes between iterations: none, half and full in random order, none. So the speed
of the process, and whatever else the machine does, affect every slowdown alike. After some blocks another process takes
over. Computing is slowed down by CPU time, because wall time would include what other programs did to the operation.
Waiting is slowed down by sleeping.
"""

from __future__ import annotations

import random
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlprof.analysis.slowdown import SLOWDOWN_SIZES, Experiment, SlowdownBlock, experiment
from rlprof.errors import RlprofError
from rlprof.experiment.arm import PATIENCE_SECONDS, Arm, ArmError
from rlprof.experiment.operation_kinds import full_slowdowns
from rlprof.experiment.slowdown_memory import Slowdown, SlowdownMemory
from rlprof.session.secrets import MASKED

BLOCKS_PER_PROCESS = 10
SECONDS_PER_PROCESS = 10.0
"""At least, both: starting a process takes time too."""
LEAST_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class SlowdownPlan:
    command: str
    """What one would type after `rlprof`."""
    operations: tuple[str, ...]
    working_folder: str | None = None
    shares_gil: bool = False
    """Several threads of the training work at the same time."""
    settle: int = 0
    """Iterations after each change that do not count, because their work began before the change."""
    counted: int = 1
    """Iterations after those, which count."""
    blocks: int = 10_000
    """Most blocks."""
    seconds: float = 300.0
    """Most time, except that every process runs at least one block."""
    width: float = 0.01
    """Stop once half the confidence interval of each cost is below this share of an iteration."""
    patience: float | None = None
    """Seconds for a start or an iteration (default: ten minutes, or `seconds` if that is less)."""


@dataclass(frozen=True, slots=True)
class SlowdownProgress:
    process: int
    block: int
    so_far: Mapping[str, Experiment]
    seconds_left: float


OnProgress = Callable[[SlowdownProgress], None]


@dataclass(slots=True)
class _Found:
    blocks: list[SlowdownBlock] = field(default_factory=list)
    full: Slowdown = field(default_factory=Slowdown)
    """The slowdown that doubles its time."""
    why_not: str = ""


def run_slowdowns(plan: SlowdownPlan, on_progress: OnProgress = lambda _: None) -> dict[str, Experiment]:
    """The result for each operation. Ctrl-C ends the experiment with what was found so far, if there is anything."""
    chance = random.Random()
    found = {name: _Found() for name in plan.operations}
    began = time.monotonic()
    process = 0
    while not _enough(plan, found, time.monotonic() - began):
        process += 1

        def report(block: int, process: int = process) -> None:
            left = max(0.0, plan.seconds - (time.monotonic() - began))
            on_progress(SlowdownProgress(process, block, _experiments(found), left))

        try:
            _run_process(plan, found, chance, began, report)
        except KeyboardInterrupt:
            if not any(one.blocks for one in found.values()):
                raise
            break
    return _experiments(found)


def _experiments(found: Mapping[str, _Found]) -> dict[str, Experiment]:
    return {
        name: experiment(name, one.blocks, one.full.held, one.full.sleep, one.why_not) for name, one in found.items()
    }


def _enough(plan: SlowdownPlan, found: Mapping[str, _Found], taken: float) -> bool:
    open_ = [one for one in found.values() if not one.why_not]
    blocks = min((len(one.blocks) for one in open_), default=plan.blocks)
    if not open_ or blocks >= plan.blocks or (blocks and taken > plan.seconds):
        return True
    widths = [one.half_width for one in _experiments(found).values() if not one.why_not]
    return blocks >= LEAST_BLOCKS and all(width is not None and width <= plan.width for width in widths)


def _run_process(
    plan: SlowdownPlan,
    found: Mapping[str, _Found],
    chance: random.Random,
    began: float,
    report: Callable[[int], None],
) -> None:
    with tempfile.TemporaryDirectory(prefix="rlprof-whatif-") as temporary:
        folder = Path(temporary)
        memory = SlowdownMemory(folder / "slowdowns", plan.operations, create=True)
        patience = plan.patience or min(PATIENCE_SECONDS, plan.seconds)
        variables = memory.variables()
        with Arm("the training", plan.command, folder, variables, plan.working_folder, False, patience) as arm:
            report(0)
            arm.begin()
            for name, full in full_slowdowns(arm, memory, plan.operations, plan.shares_gil).items():
                found[name].full, found[name].why_not = (Slowdown(), full) if isinstance(full, str) else (full, "")
            full_by_name = {name: one.full for name, one in found.items() if one.full != Slowdown()}
            done, since = 0, time.monotonic()
            while full_by_name and not _enough(plan, found, time.monotonic() - began):
                if done >= BLOCKS_PER_PROCESS and time.monotonic() - since > SECONDS_PER_PROCESS:
                    break
                measured = _run_block(plan, arm, memory, full_by_name, chance)
                if measured is None:
                    break
                for name, block in measured.items():
                    found[name].blocks.append(block)
                done += 1
                report(done)
            if not done and arm.ended:
                early = f"{arm} ended before every slowdown was tried once. Let it train longer with --command"
                raise ArmError(early + arm.last_output())


def _run_block(
    plan: SlowdownPlan, arm: Arm, memory: SlowdownMemory, full: Mapping[str, Slowdown], chance: random.Random
) -> dict[str, SlowdownBlock] | None:
    """For each operation: no slowdown, both slowdowns in random order, no slowdown. None if the training ends."""
    found = {}
    for name in chance.sample(list(full), len(full)):
        times: dict[float, list[float]] = {}
        # A steady change meanwhile, such as a machine that gets slower, cancels out.
        for part in (0.0, *chance.sample(SLOWDOWN_SIZES, len(SLOWDOWN_SIZES)), 0.0):
            memory.set(name, Slowdown(part * full[name].spin, full[name].held, part * full[name].sleep))
            counted = arm.run_each(plan.settle + plan.counted)[plan.settle :]
            if len(counted) < plan.counted:
                return None
            steps = sum(one.steps for one in counted)
            times.setdefault(part, []).append(sum(one.wall_ns for one in counted) / (steps or plan.counted))
        found[name] = SlowdownBlock(sum(times[0.0]) / 2, tuple(times[part][0] for part in SLOWDOWN_SIZES))
    return found


def command_of(command: Sequence[str]) -> str:
    """What one would type after `rlprof` to run a recorded program again."""
    words = list(command)
    if any(MASKED in word for word in words):
        raise RlprofError("A secret in this session's command is masked. Give one with --command 'run train.py ...'")
    for place, word in enumerate(words[:-1]):
        if Path(word).name in ("rlprof", "__main__.py") and words[place + 1] == "train":
            return shlex.join(words[place + 1 :])
    if not words or "-c" in words[:3] or len(words) < 2:
        raise RlprofError("This session's command cannot be repeated. Give one with --command 'run train.py ...'")
    return shlex.join(["run", "--", *words])
