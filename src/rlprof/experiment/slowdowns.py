"""Slows operations of a real training down by known doses, and sees what that does to its iterations.

One process, whose dose changes between iterations: none, half and all in random order, none. Its speed is its own, and
what the machine does meanwhile meets every dose alike. After some blocks another process goes on. A dose is by CPU
time, as time on the wall would be dosed by what others did to it; what an operation waits is slept.
"""

from __future__ import annotations

import random
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rlprof.analysis.slowdown import DOSES, DosedBlock, Experiment, experiment
from rlprof.errors import RlprofError
from rlprof.experiment.arm import PATIENCE_SECONDS, Arm, ArmError
from rlprof.experiment.operation_kinds import look
from rlprof.experiment.slowdown_memory import Dose, Doses
from rlprof.recording.environment import DOSES as VARIABLE
from rlprof.session.secrets import MASKED

BLOCKS_OF_A_PROCESS = 10
SECONDS_OF_A_PROCESS = 10.0
"""At least, both: starting one costs time, too."""
LEAST_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class DosePlan:
    command: str
    """What one would type after `rlprof`."""
    operations: tuple[str, ...]
    working_folder: str | None = None
    shares_gil: bool = False
    """Several of its threads work at the same time."""
    settle: int = 0
    """Iterations after each change of dose that do not count: of what was begun before."""
    counted: int = 1
    """Iterations after those."""
    blocks: int = 10_000
    """At most."""
    seconds: float = 300.0
    """At most, but for one block of every process."""
    width: float = 0.01
    """Enough: half the interval of what is measured, as a share of an iteration."""
    patience: float | None = None
    """Seconds for an iteration or a start, after which the training hangs; None: ten minutes, or all the time there
    is."""


@dataclass(frozen=True, slots=True)
class DoseState:
    """How far it is."""

    process: int
    block: int
    so_far: Mapping[str, Experiment]
    seconds_left: float


@dataclass(slots=True)
class _Found:
    """Of one operation."""

    blocks: list[DosedBlock] = field(default_factory=list)
    like: Dose | None = None
    why_not: str = ""


def run_doses(plan: DosePlan, tell: Callable[[DoseState], None] = lambda _: None) -> dict[str, Experiment]:
    """Of each operation. Ctrl-C ends it with what was found so far, if that is anything."""
    chance = random.Random()
    found = {name: _Found() for name in plan.operations}
    began = time.monotonic()
    process = 0
    while not _enough(plan, found, time.monotonic() - began):
        process += 1
        try:
            _one_process(plan, found, chance, began, partial(_say, tell, plan, found, process, began))
        except KeyboardInterrupt:
            if not any(one.blocks for one in found.values()):
                raise
            break
    return _experiments(found)


def _say(
    tell: Callable[[DoseState], None],
    plan: DosePlan,
    found: Mapping[str, _Found],
    process: int,
    began: float,
    block: int,
) -> None:
    tell(DoseState(process, block, _experiments(found), max(0.0, plan.seconds - (time.monotonic() - began))))


def _experiments(found: Mapping[str, _Found]) -> dict[str, Experiment]:
    return {
        name: experiment(
            name, one.blocks, one.like.held if one.like else 0.0, one.like.sleep if one.like else 0.0, one.why_not
        )
        for name, one in found.items()
    }


def _enough(plan: DosePlan, found: Mapping[str, _Found], taken: float) -> bool:
    open_ = [one for one in found.values() if not one.why_not]
    blocks = min((len(one.blocks) for one in open_), default=plan.blocks)
    if not open_ or blocks >= plan.blocks or (blocks and taken > plan.seconds):
        return True
    widths = [one.half_width for one in _experiments(found).values() if not one.why_not]
    return blocks >= LEAST_BLOCKS and all(width is not None and width <= plan.width for width in widths)


def _one_process(
    plan: DosePlan, found: Mapping[str, _Found], chance: random.Random, began: float, tell: Callable[[int], None]
) -> None:
    with tempfile.TemporaryDirectory(prefix="rlprof-whatif-") as temporary:
        folder = Path(temporary)
        doses = Doses(folder / "doses", plan.operations, create=True)
        variables = {VARIABLE: doses.variable()}
        patience = plan.patience or min(PATIENCE_SECONDS, plan.seconds)
        with Arm("the training", plan.command, folder, variables, plan.working_folder, False, patience) as arm:
            tell(0)
            arm.begin()
            for name, like in look(arm, doses, plan.operations, plan.shares_gil).items():
                found[name].like, found[name].why_not = (None, like) if isinstance(like, str) else (like, "")
            dosed = [name for name, one in found.items() if one.like is not None]
            done, since = 0, time.monotonic()
            while dosed and not _enough(plan, found, time.monotonic() - began):
                if done >= BLOCKS_OF_A_PROCESS and time.monotonic() - since > SECONDS_OF_A_PROCESS:
                    break
                measured = _block(plan, arm, doses, {name: found[name].like or Dose() for name in dosed}, chance)
                if measured is None:
                    break
                for name, block in measured.items():
                    found[name].blocks.append(block)
                done += 1
                tell(done)
            if not done and arm.ended:
                longer = "let it train longer: --command"
                raise ArmError(f"{arm} has ended before every dose was given once; {longer}{arm.last_words()}")


def _block(
    plan: DosePlan, arm: Arm, doses: Doses, dosed: Mapping[str, Dose], chance: random.Random
) -> dict[str, DosedBlock] | None:
    """Of each operation: none, the doses in random order, none. None where the training has ended meanwhile."""
    found = {}
    for name in chance.sample(list(dosed), len(dosed)):
        times: dict[float, list[float]] = {}
        # What changes steadily meanwhile, as a machine that gets slower, cancels.
        for dose in (0.0, *chance.sample(DOSES, len(DOSES)), 0.0):
            doses.give(name, Dose(dose * dosed[name].spin, dosed[name].held, dose * dosed[name].sleep))
            counted = arm.take_turns(plan.settle + plan.counted)[plan.settle :]
            if len(counted) < plan.counted:
                return None
            steps = sum(turn.steps for turn in counted)
            times.setdefault(dose, []).append(sum(turn.wall_ns for turn in counted) / (steps or plan.counted))
        found[name] = DosedBlock(sum(times[0.0]) / 2, tuple(times[dose][0] for dose in DOSES))
    return found


def command_of(command: Sequence[str]) -> str:
    """What one would type after `rlprof` to run a recorded program again."""
    words = list(command)
    if any(MASKED in word for word in words):
        raise RlprofError("this session masks a secret in its command line; give it with --command 'run train.py ...'")
    for place, word in enumerate(words[:-1]):
        if Path(word).name in ("rlprof", "__main__.py") and words[place + 1] == "train":
            return shlex.join(words[place + 1 :])
    if not words or "-c" in words[:3] or len(words) < 2:
        raise RlprofError("how this session was run cannot be repeated; say it with --command 'run train.py ...'")
    return shlex.join(["run", "--", *words])
