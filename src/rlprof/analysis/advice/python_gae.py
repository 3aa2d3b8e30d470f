"""Advantages are computed by a loop in Python, where a few vector operations would be enough."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding, Gain
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import beside_networks, function_of, gain_of, hottest_function
from rlprof.analysis.advice.lookup import CONSIDERABLE, at_work, names_of, number, ratio, share_of
from rlprof.analysis.code import Line
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.analysis.topology import own
from rlprof.ledger.catalogue import PHASES

ADVANTAGES = ("advantage", "gae", "compute_returns")
BY_RULE = "advantage"
"""All time between a rollout and its update has this name if no framework's probe knows better."""

LOOKS_LIKE_IT = re.compile(
    r"gae|advantage|\badv|delta|gamma|lam(?:bda|b|_)?\b|returns?\b|discount|bootstrap", re.IGNORECASE
)
"""Names in the text of a line or in the name of its function."""
NAMED_AFTER_IT = re.compile(
    r"(?:^|[._])(?:\w*_)?(?:gae|advantages?|returns?|discount\w*|rewards?_to_go)(?:_\w*)?$", re.IGNORECASE
)
"""Names of functions that compute nothing else."""
MOST_OF_IT = 0.5
"""Least fraction of the operation's own time in lines that look like it."""

VECTORISED_CALL_NS = 400_000
VECTORISED_STEP_NS = 50
"""What a vectorised GAE needs per call and per env step on the slowest machine that was measured. Loops took, per env
step: torch 32 to 58 us with 1 env, 5 to 7 us with 8 (2 us on a fast machine, where a scan takes a quarter as long too);
numpy 8.5 us with 1, 0.7 to 1.2 us with 8; plain floats 0.17 to 0.30 us, which is so close that the rule only finds it
with many steps per call."""

FASTEST_CALL_NS = 50_000
FASTEST_STEP_NS = 6
"""The least it needs. Measured as a scan over 128 timesteps: 0.05 to 0.06 ms (numpy) or 0.10 to 0.38 ms (torch) per
call with 1 env, and 6 to 14 ns per step with 512."""

FAR_ABOVE = 3.0
"""Times what a vectorised one needs at most. Two thirds of the time can then be saved."""


def python_gae(facts: Facts) -> Finding | None:
    """Only CPU time counts: on the wall clock, a sleep or a wait between rollout and update looks the same."""
    found = [operation for operation in facts.operations if operation.operation in ADVANTAGES]
    on_cpu = at_work(facts, found)
    share = share_of(facts, found) * (on_cpu or 0.0)
    calls = max((number(operation.calls) for operation in found), default=0.0)
    if on_cpu is None or share < CONSIDERABLE or not calls:
        return _in_a_phase(facts)
    name = names_of(found)[0]
    lines = facts.code.within(name)
    like = [line for line in lines if LOOKS_LIKE_IT.search(line.source) or LOOKS_LIKE_IT.search(line.function)]
    if name == BY_RULE and facts.code.sampled_ns and sum(line.share for line in like) < MOST_OF_IT:
        return _in_a_phase(facts)
    spent = sum(number(operation.cpu_ns) for operation in found)
    cost = _Cost(name, spent, calls, number(facts.progress.steps))
    place = max(like, key=lambda line: line.ns, default=None)
    evidence = f"{name} was computing on a CPU for {as_percent(on_cpu)} of its own time."
    names = names_of(found)
    return _finding(facts, cost, share, place, names, (evidence,), lambda left: gain_if(facts, _own(names, left)))


def _in_a_phase(facts: Facts) -> Finding | None:
    """Where no operation holds the advantages alone, the functions of the user's that are named after them."""
    matched = hottest_function(hot for hot in beside_networks(facts) if NAMED_AFTER_IT.search(function_of(hot.line)))
    if matched is None or matched.share < CONSIDERABLE or not matched.is_sure:
        return None
    on_cpu = at_work(facts, [item for item in facts.operations if item.operation in matched.operations])
    if on_cpu is None or on_cpu < MOST_OF_IT:
        return None
    spent = matched.share * number(facts.breakdown.training_ns) * on_cpu
    name = f"{function_of(matched.place)}()"
    cost = _Cost(name, spent, number(facts.progress.iterations) or 1.0, number(facts.progress.steps))
    names = tuple(name for name in matched.operations if name not in PHASES)
    evidence = matched.evidence()
    return _finding(
        facts, cost, matched.share, matched.place, names, evidence, lambda left: gain_of(facts, matched, left)
    )


@dataclass(frozen=True, slots=True)
class _Cost:
    name: str
    spent: float
    """CPU time in ns."""
    calls: float
    steps: float

    @property
    def factor(self) -> float:
        """How many times as long as a vectorised version on the slowest machine measured."""
        return ratio(self.spent, self.calls * VECTORISED_CALL_NS + self.steps * VECTORISED_STEP_NS)

    @property
    def left(self) -> Left:
        fastest = ratio(self.calls * FASTEST_CALL_NS + self.steps * FASTEST_STEP_NS, self.spent)
        return Left(1 / self.factor, fastest, min(0.7, max(0.15, 4 / self.factor)))


def _finding(
    facts: Facts,
    cost: _Cost,
    share: float,
    place: Line | None,
    operations: tuple[str, ...],
    evidence: tuple[str, ...],
    gain: Callable[[Left], Gain],
) -> Finding | None:
    if not cost.steps or cost.factor < FAR_ABOVE:
        return None
    return Finding(
        rule="python_gae",
        cause=f"{cost.name} takes {as_percent(share)} of the training time: {duration(cost.spent / cost.steps)} per "
        f"env step, where a scan over whole arrays takes {duration(cost.spent / cost.factor / cost.steps)} at most.",
        place=place,
        operations=operations,
        evidence=(
            f"{count(cost.calls)} calls for {count(cost.steps)} env steps took {duration(cost.spent)} of CPU time, "
            f"{as_percent(share)} of the training time.",
            f"One call takes {duration(ratio(cost.spent, cost.calls))}. That is the time of a Python loop over "
            "timesteps, not of a few operations on whole arrays.",
            *evidence,
        ),
        change="Convert the tensors to numpy arrays once before the loop (`rewards = rewards.numpy()`), loop over time "
        "only and over all environments at once, or use a scan: torchrl's vectorised GAE, or scipy.signal.lfilter "
        "between the ends of episodes.",
        gain=gain(cost.left),
        check=compare_with_change(facts),
    )


def _own(names: tuple[str, ...], left: Left) -> dict[str, Left]:
    return {own(name): left for name in names}
