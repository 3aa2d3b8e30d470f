"""What to change next: findings with their cause, place, evidence and gain. One rule or family of rules a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlprof.analysis.advice.anomaly_mode import anomaly_mode
from rlprof.analysis.advice.cheap_env_workers import cheap_env_workers
from rlprof.analysis.advice.dataloader_restarts import dataloader_restarts
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.float64 import float64
from rlprof.analysis.advice.forward_one_by_one import forward_one_by_one
from rlprof.analysis.advice.gc_pauses import gc_pauses
from rlprof.analysis.advice.heavy_wrapper import heavy_wrapper
from rlprof.analysis.advice.import_in_loop import import_in_loop
from rlprof.analysis.advice.in_loop import in_loop
from rlprof.analysis.advice.line_patterns import line_patterns
from rlprof.analysis.advice.lines import function_of
from rlprof.analysis.advice.memory_growth import memory_growth
from rlprof.analysis.advice.per_step_sync import per_step_sync
from rlprof.analysis.advice.policy_batch import policy_batch
from rlprof.analysis.advice.python_gae import python_gae
from rlprof.analysis.advice.python_loop import python_loop
from rlprof.analysis.advice.recompiling import recompiling
from rlprof.analysis.advice.reset_storm import reset_storm
from rlprof.analysis.advice.single_core_env import single_core_env
from rlprof.analysis.advice.slowing_down import growing_operation, slowing_down
from rlprof.analysis.advice.small_minibatch import small_minibatch
from rlprof.analysis.advice.straggler_env import straggler_env
from rlprof.analysis.advice.teacher_one_by_one import teacher_one_by_one
from rlprof.analysis.advice.torch_threads import torch_threads
from rlprof.analysis.advice.unfused_optimizer import unfused_optimizer
from rlprof.analysis.advice.waiting import waiting
from rlprof.analysis.advice.worker_code import worker_code
from rlprof.analysis.advice.worker_restarts import worker_restarts
from rlprof.analysis.advice.worker_threads import worker_threads
from rlprof.analysis.facts import Facts

Rule = Callable[[Facts], Finding | None]
Family = Callable[[Facts], Sequence[Finding]]

RULES: tuple[Rule, ...] = (
    anomaly_mode,
    float64,
    gc_pauses,
    recompiling,
    import_in_loop,
    dataloader_restarts,
    worker_restarts,
    worker_code,
    straggler_env,
    heavy_wrapper,
    worker_threads,
    cheap_env_workers,
    small_minibatch,
    unfused_optimizer,
    policy_batch,
    per_step_sync,
    teacher_one_by_one,
    forward_one_by_one,
    python_gae,
    torch_threads,
    memory_growth,
)
FAMILIES: tuple[Family, ...] = (line_patterns, in_loop, waiting)
GENERAL: tuple[Rule, ...] = (reset_storm, python_loop, slowing_down, single_core_env)
"""They speak of whole operations, whatever makes them slow. At the same line, any other rule says more."""

MUCH = 0.5
"""Least part of what an operation promises that its lines promise."""
URGENT = 1e9
LEAST_GAIN = 1.04
"""A smaller gain is not worth a change, and equal runs differ by as much."""


def advise(facts: Facts) -> tuple[Finding, ...]:
    """The findings of all rules, the largest predicted gain first. Those that are not about speed come last."""
    found = [finding for rule in RULES if (finding := rule(facts)) is not None]
    found += [finding for family in FAMILIES for finding in family(facts)]
    found += [finding for rule in GENERAL if (finding := rule(facts)) is not None]
    found = _without_explained_loop(found)
    found = [finding for finding in found if finding.gain is None or finding.gain.estimate >= LEAST_GAIN]
    return tuple(_one_per_cause(_one_per_place(_without_explained_growth(facts, _not_in_one_by_one(found)))))


def _rank(finding: Finding) -> tuple[bool, float]:
    """A run that will soon be killed for its memory comes before any gain. Another number of environments comes after
    mistakes in the code: it also changes how the training learns."""
    gain = -URGENT if finding.urgent else -finding.gain.estimate if finding.gain else 0.0
    return finding.rule == "tiny_batch_inference", gain


def _not_in_one_by_one(found: Sequence[Finding]) -> list[Finding]:
    """Without lines of the function that calls the policy for one environment at a time: they run as often as that."""
    calls = [finding.place for finding in found if finding.rule == "policy_per_env" and finding.place is not None]
    around = {(place.file, function_of(place)) for place in calls}

    def is_inside(finding: Finding) -> bool:
        place = finding.place
        return _names_lines(finding) and place is not None and (place.file, function_of(place)) in around

    return [finding for finding in found if not is_inside(finding)]


def _without_explained_loop(found: Sequence[Finding]) -> list[Finding]:
    """Without a loop in a function of which another finding says what its lines do."""

    def function(finding: Finding) -> tuple[str, str] | None:
        return (finding.place.file, function_of(finding.place)) if finding.place is not None else None

    explained = {
        function(finding) for finding in found if _names_lines(finding) and finding.rule != python_loop.__name__
    }
    return [one for one in found if one.rule != python_loop.__name__ or function(one) not in explained]


def _without_explained_growth(facts: Facts, found: Sequence[Finding]) -> list[Finding]:
    """Without the finding that an operation takes longer and longer, if another one names lines in it."""
    slower = next((finding for finding in found if finding.rule == slowing_down.__name__), None)
    growing = growing_operation(facts)
    if slower is None or growing is None:
        return list(found)

    def explains(finding: Finding) -> bool:
        place = finding.place
        named = finding is not slower and place is not None and _names_lines(finding)
        inside = named and place is not None and facts.code.main_operation(place) == growing
        return inside and _gained(finding) >= MUCH * _gained(slower)

    explained = any(map(explains, found))
    return [finding for finding in found if finding is not slower or not explained]


def _one_per_place(found: Sequence[Finding]) -> list[Finding]:
    """Of several findings about the same line, only the first in the order of the rules: the most specific one."""
    kept: dict[object, Finding] = {}
    for finding in found:
        place = finding.place if finding.gain is not None else None  # memory is not time
        key: object = (place.file, place.line) if place is not None else finding.rule
        if finding.rule == single_core_env.__name__ and getattr(kept.get(key), "rule", "") == python_loop.__name__:
            key = finding.rule  # other cores help a loop in Python as well
        kept.setdefault(key, finding)
    return list(kept.values())


def _one_per_cause(found: Sequence[Finding]) -> list[Finding]:
    """A rule may speak of an operation and of lines in it. That is the same time. Keep the lines, which say more,
    unless the operation promises far more."""
    kept: list[Finding] = []
    for finding in sorted(found, key=_rank):
        same = [one for one in kept if one.rule == finding.rule and one.place != finding.place]
        same = [one for one in same if set(one.operations) & set(finding.operations)]
        if not same:
            kept.append(finding)
        elif _names_lines(finding) and not _names_lines(same[0]) and _gained(finding) >= MUCH * _gained(same[0]):
            kept[kept.index(same[0])] = finding
    return sorted(kept, key=_rank)


def _names_lines(finding: Finding) -> bool:
    return finding.place is not None and finding.place.where in finding.cause


def _gained(finding: Finding) -> float:
    return finding.gain.estimate - 1 if finding.gain is not None else 0.0
