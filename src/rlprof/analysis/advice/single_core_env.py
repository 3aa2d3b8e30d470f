"""Environments take most of the time and are stepped one after the other while other cores are free."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import place_of
from rlprof.analysis.advice.lookup import env_step_calls, names_of, number, ratio, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration

LARGE_SHARE = 0.40
"""Least share of the training time. Below it, a second core could gain at most 1.25x."""

ONE_CORE = (0.4, 1.3)
"""Cores that compute while the training waits for its environments. Below, the environments wait for a server, a pipe
or a sleep, not for a core; even on a shared machine a busy thread usually gets half a core. Above, they already run in
parallel. Threads that share Python's GIL come out at 1."""

CHILDREN_AT_WORK = 0.2
"""Fraction of this process's own CPU time. Child processes that use more are probably environments already."""

LEAST_STEP_NS = 300_000
"""A step of one environment. Sending it to a worker process and back takes 0.1 to 0.2 ms: shorter steps get slower."""


def single_core_env(facts: Facts) -> Finding | None:
    env = [operation for operation in facts.of_category("environment", "rendering") if operation.cpu_ns is not None]
    share = share_of(facts, env)
    cores = int(number(facts.session.cores))
    children = number(facts.resources.children_cpu_mean)
    if share < LARGE_SHARE or cores < 2 or children > CHILDREN_AT_WORK * number(facts.resources.cpu_mean):
        return None
    waited_for = sum(number(operation.ledger_ns) for operation in env)
    used = ratio(sum(number(operation.cpu_ns) for operation in env), waited_for)
    steps = number(facts.progress.steps) or env_step_calls(facts)
    resets = sum(number(operation.ledger_ns) for operation in env if operation.operation == "env_reset")
    per_step = ratio(waited_for - resets, steps)
    together = ratio(number(facts.progress.steps), env_step_calls(facts))
    if not ONE_CORE[0] <= used <= ONE_CORE[1] or per_step < LEAST_STEP_NS:
        return None
    lanes = max(len(operation.lanes) for operation in env)
    threads = f" ({lanes} threads share Python's GIL and so one core)" if lanes > 1 else ""
    return Finding(
        rule="single_core_env",
        cause=f"Stepping the environments takes {as_percent(share)} of the training time and uses one of {cores} "
        "cores.",
        place=place_of(facts, *names_of(env)),
        operations=names_of(env),
        evidence=(
            f"A step of one environment takes {duration(per_step)}, {count(round(max(1.0, together), 1))} are stepped "
            f"per call of env_step.",
            f"They kept {used:.2f} cores busy during that time. This process may use {cores}.",
            f"Child processes used {count(round(children))}% of one core.",
        ),
        change=f"Step the environments in worker processes{threads}: "
        "`gymnasium.vector.AsyncVectorEnv([make_env] * n)` or stable-baselines3's `SubprocVecEnv([make_env] * n)`, "
        "with `torch.set_num_threads(1)` in each.",
        gain=gain_if(facts, dict.fromkeys(names_of(env), Left(1.2 / cores, 0.95 / cores, min(0.95, 1.8 / cores)))),
        check=compare_with_change(facts),
    )
