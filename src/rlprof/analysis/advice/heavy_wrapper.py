"""Wrappers that take longer than the environment that they wrap."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import match, place_of
from rlprof.analysis.advice.lookup import (
    CONSIDERABLE,
    ENOUGH_CALLS,
    at_work,
    fraction,
    number,
    outermost,
    ratio,
    share_of,
)
from rlprof.analysis.advice.updates import trains_with_sb3
from rlprof.analysis.code import Line
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.session.evidence import Level

WRAPPER_LEFT = Left(0.15, 0.0, 0.6)
"""What is left of a wrapper's time if it is rewritten or dropped. Nothing if it is dropped; a loop over elements that
becomes one numpy call leaves a tenth."""

ENV_STEP = "env_step"
COMPUTES = 0.5
"""Least fraction of its time that env_step is on a CPU."""


def heavy_wrapper(facts: Facts) -> Finding | None:
    """Speaks if one wrapper takes longer than the environment inside, and a tenth of the training time."""
    levels = [level for level in facts.evidence.levels if level.calls >= ENOUGH_CALLS]
    # The time of a wrapper around worker processes includes waiting for them.
    waiting = {name for one in facts.evidence.environments if one.kind == "workers" for name in one.chain}
    wrappers = [level for level in levels if level.wraps and level.name not in waiting]
    inside = [level for level in levels if not level.wraps]
    if not wrappers or not inside:
        return None
    # A vector steps many environments per call, and workers' environments are counted by their own steps.
    env = max(inside, key=lambda level: (level.depth, number(level.own_ns)))
    worst = max(wrappers, key=lambda level: number(level.own_ns))
    deepest = [level for level in levels if level.wraps or level is env]
    of_steps = fraction(worst.own_ns, sum(number(level.own_ns) for level in _comparable(facts, levels, deepest)))
    steps = outermost(facts.breakdown.rows, lambda row: row.operation == ENV_STEP)
    share = of_steps * fraction(steps.total_ns, facts.breakdown.training_ns)
    drawn = share_of(facts, facts.of_category("rendering"))
    in_vector = any(env.name == one.chain[0] and one.envs > 1 for one in facts.evidence.environments if one.chain)
    if share - drawn < CONSIDERABLE or number(worst.own_ns) <= number(env.own_ns) or in_vector:
        return None  # what it draws has a rule of its own; a vector is not what a wrapper of one environment wraps
    on_cpu = at_work(facts, [one for one in facts.operations if one.operation == ENV_STEP])
    if on_cpu is not None and on_cpu < COMPUTES:
        return None  # it waits for something, whatever the wrapper is
    left = Left(*(1 - of_steps * (1 - part) for part in (WRAPPER_LEFT.estimate, WRAPPER_LEFT.least, WRAPPER_LEFT.most)))
    return Finding(
        rule="heavy_wrapper",
        cause=f"The wrapper {worst.name} takes {as_percent(share)} of the training time, {_times(worst, env)} as long "
        f"as {env.name}, which it wraps.",
        place=_place(facts),
        operations=(ENV_STEP,),
        evidence=(
            f"Per step, in {count(worst.calls)} steps that were measured: {_described(levels)}.",
            f"{worst.name} is in {worst.module}, and has {as_percent(of_steps)} of the time of env_step.",
        ),
        change=_change(facts, worst),
        gain=gain_if(facts, {ENV_STEP: left}),
        check=compare_with_change(facts),
    )


def _comparable(facts: Facts, levels: list[Level], deepest: list[Level]) -> list[Level]:
    """With worker processes, a vector's own time is waiting for them."""
    workers = any(environment.kind == "workers" for environment in facts.evidence.environments)
    return deepest if workers else levels


def _times(worst: Level, env: Level) -> str:
    return f"{count(round(max(1.1, ratio(worst.own_ns, env.own_ns)), 1))} times"


def _described(levels: list[Level]) -> str:
    largest = sorted(levels, key=lambda level: -number(level.own_ns))[:4]
    return ", ".join(f"{level.name} {duration(ratio(level.own_ns, level.calls))}" for level in largest)


def _place(facts: Facts) -> Line | None:
    """A line inside of the steps, in the wrapper's own code if the samples tell."""
    found = match(facts, r".", operations=(ENV_STEP,))
    return found.place if found is not None else place_of(facts, ENV_STEP)


def _change(facts: Facts, level: Level) -> str:
    if level.module.startswith(("gymnasium.", "stable_baselines3.")):
        return (
            f"Drop {level.name} if you do not need it, or do its work once for all environments: gymnasium has most "
            "wrappers for vectors in `gymnasium.wrappers.vector`."
        )
    vector = "`VecEnvWrapper`" if trains_with_sb3(facts) else "`gymnasium.vector.VectorWrapper`"
    return (
        f"Rewrite {level.name}: whole arrays instead of loops over elements, and Python's `math` instead of numpy or "
        f"scipy for single numbers. With several environments, apply it once to their batch ({vector})."
    )
