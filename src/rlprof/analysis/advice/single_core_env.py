"""Environments take most of the time and compute on one core while other cores are free."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.lookup import AGAIN, names_of, number, ratio, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count

LARGE_SHARE = 0.40
"""Least share of the wall time. Below it, a second core could gain at most 1.25x."""

ONE_CORE = (0.4, 1.3)
"""Cores that compute while the training waits for its environments. Below, the environments wait for a server, a pipe
or a sleep, not for a core; even on a shared machine a busy thread usually gets half a core. Above, they already run in
parallel. Threads that share Python's GIL come out at 1."""

CHILDREN_AT_WORK = 0.2
"""Fraction of this process's own CPU time. Child processes that use more are probably environments already."""


def single_core_env(facts: Facts) -> Advice | None:
    env = [operation for operation in facts.of_category("environment", "rendering") if operation.cpu_ns is not None]
    share = share_of(facts, env)
    cores = int(number(facts.session.cores))
    children = number(facts.resources.children_cpu_mean)
    if share < LARGE_SHARE or cores < 2 or children > CHILDREN_AT_WORK * number(facts.resources.cpu_mean):
        return None
    waited_for = sum(number(operation.ledger_ns) for operation in env)
    used = ratio(sum(number(operation.cpu_ns) for operation in env), waited_for)
    if not ONE_CORE[0] <= used <= ONE_CORE[1]:
        return None
    lanes = max(len(operation.lanes) for operation in env)
    threads = f" ({lanes} threads share Python's GIL and so one core)" if lanes > 1 else ""
    return Advice(
        rule="single_core_env",
        title=f"Stepping the environments takes {as_percent(share)} of the wall time and uses one of {cores} cores.",
        operations=names_of(env),
        evidence=(
            f"Environment operations: {', '.join(names_of(env)[:3])}.",
            f"They kept {used:.2f} cores busy during that time. This process may use {cores}.",
            f"Child processes used {count(round(children))}% of one core.",
        ),
        action=f"Step the environments in worker processes{threads}, with gymnasium's AsyncVectorEnv or "
        "stable-baselines3's SubprocVecEnv, or use an environment that is vectorised in native code.",
        gain=(1.0, speedup(share, cores)),
        check=f"{AGAIN}: steps per second should rise, and the environments' share of the wall time should fall.",
    )
