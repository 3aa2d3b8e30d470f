"""Environments take most of the time, and compute on one core while others are free to help."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.arithmetic import number, ratio
from rlprof.analysis.advice.lookup import AGAIN, names_of, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count

LARGE_SHARE = 0.40
"""Of the wall time. Below it, a second core could not bring more than 1.25x."""

ONE_CORE = (0.4, 1.3)
"""Cores computing while the training waits for its environments. Below, they wait for something that is no core: a
server, a pipe, a sleep; others on the machine usually leave a busy thread half of its core. Above, they run side by
side already. Threads that hold Python's lock in turn come out at 1."""

CHILDREN_AT_WORK = 0.2
"""Of this process's own CPU time. Child processes that use this much are probably environments already."""


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
    threads = f" ({lanes} threads of Python code take turns on one core)" if lanes > 1 else ""
    return Advice(
        rule="single_core_env",
        title=f"Stepping the environments takes {as_percent(share)} of the wall time and keeps one of {cores} cores "
        "busy.",
        operations=names_of(env),
        evidence=(
            f"{', '.join(names_of(env)[:3])}: {as_percent(share)} of the wall time is theirs.",
            f"Meanwhile they kept {used:.2f} cores computing, of {cores} that this process may use.",
            f"Child processes used {count(round(children))}% of one core.",
        ),
        action=f"Step the environments in worker processes{threads}: gymnasium's AsyncVectorEnv, "
        "stable-baselines3's SubprocVecEnv; or use an environment that is vectorised in native code.",
        gain=(1.0, speedup(share, cores)),
        check=f"{AGAIN}: steps per second should rise, and the environments' share of the wall time fall.",
    )
