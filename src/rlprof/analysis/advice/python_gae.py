"""Advantages are computed by a loop in Python, where a few vector operations would be enough."""

from __future__ import annotations

import re

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lookup import CONSIDERABLE, at_work, names_of, number, ratio, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.analysis.topology import own

ADVANTAGES = ("advantage", "gae", "compute_returns")
BY_RULE = "advantage"
"""All time between a rollout and its update has this name if no framework's probe knows better."""

LOOKS_LIKE_IT = re.compile(
    r"gae|advantage|\badv|delta|gamma|lam(?:bda|b|_)?\b|returns?\b|discount|bootstrap", re.IGNORECASE
)
"""Names in the text of a line or in the name of its function."""
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
    steps = number(facts.progress.steps)
    calls = max((number(operation.calls) for operation in found), default=0.0)
    if on_cpu is None or share < CONSIDERABLE or not steps or not calls:
        return None
    name = names_of(found)[0]
    lines = facts.code.within(name)
    like = [line for line in lines if LOOKS_LIKE_IT.search(line.source) or LOOKS_LIKE_IT.search(line.function)]
    if name == BY_RULE and facts.code.sampled_ns and sum(line.share for line in like) < MOST_OF_IT:
        return None
    spent = sum(number(operation.cpu_ns) for operation in found)
    factor = ratio(spent, calls * VECTORISED_CALL_NS + steps * VECTORISED_STEP_NS)
    if factor < FAR_ABOVE:
        return None
    fastest = ratio(calls * FASTEST_CALL_NS + steps * FASTEST_STEP_NS, spent)
    return Finding(
        rule="python_gae",
        cause=f"{name} takes {duration(ratio(spent, steps))} per env step, at least {count(round(factor))} times as "
        "long as a vectorised version.",
        place=max(like, key=lambda line: line.ns, default=None),
        operations=names_of(found),
        evidence=(
            f"{count(calls)} calls for {count(steps)} env steps took {duration(spent)} of CPU time, "
            f"{as_percent(share)} of the training time.",
            f"One call takes {duration(ratio(spent, calls))}. That is the time of a Python loop over timesteps, not of "
            "a few operations on whole arrays.",
            f"{name} was computing on a CPU for {as_percent(on_cpu)} of its own time.",
        ),
        change="Convert the tensors to numpy arrays once before the loop (`rewards = rewards.numpy()`), loop over time "
        "only and over all environments at once, or use a scan: torchrl's vectorised GAE, or scipy.signal.lfilter "
        "between the ends of episodes.",
        gain=gain_if(
            facts, {own(item): Left(1 / factor, fastest, min(0.7, max(0.15, 4 / factor))) for item in names_of(found)}
        ),
        check=compare_with_change(facts),
    )
