"""What to change next: one rule per file. A rule looks at facts and gives its evidence; without evidence, no advice."""

from __future__ import annotations

from collections.abc import Callable

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.advice.crowded_machine import crowded_machine
from rlprof.analysis.advice.idle_waiting import idle_waiting
from rlprof.analysis.advice.logging_in_loop import logging_in_loop
from rlprof.analysis.advice.memory_growth import memory_growth
from rlprof.analysis.advice.per_step_sync import per_step_sync
from rlprof.analysis.advice.python_gae import python_gae
from rlprof.analysis.advice.reset_storm import reset_storm
from rlprof.analysis.advice.rlprof_cost import rlprof_cost
from rlprof.analysis.advice.single_core_env import single_core_env
from rlprof.analysis.advice.slowing_down import slowing_down
from rlprof.analysis.advice.straggler_env import straggler_env
from rlprof.analysis.advice.teacher_one_by_one import teacher_one_by_one
from rlprof.analysis.advice.tiny_batch_inference import tiny_batch_inference
from rlprof.analysis.advice.torch_threads import torch_threads
from rlprof.analysis.advice.unattributed_time import unattributed_time
from rlprof.analysis.facts import Facts

Rule = Callable[[Facts], Advice | None]

RULES: tuple[Rule, ...] = (
    single_core_env,
    straggler_env,
    reset_storm,
    tiny_batch_inference,
    per_step_sync,
    teacher_one_by_one,
    python_gae,
    torch_threads,
    crowded_machine,
    logging_in_loop,
    idle_waiting,
    slowing_down,
    memory_growth,
    unattributed_time,
    rlprof_cost,
)


def advise(facts: Facts) -> tuple[Advice, ...]:
    """The advice of all rules, the largest possible gain first."""
    found = [advice for rule in RULES if (advice := rule(facts)) is not None]
    return tuple(sorted(found, key=lambda advice: -advice.most))
