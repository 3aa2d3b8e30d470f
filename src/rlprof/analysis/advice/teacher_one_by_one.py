"""The teacher is called for one environment at a time, while the policy handles all environments at once."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import loop_of
from rlprof.analysis.advice.lookup import (
    CONSIDERABLE,
    ENOUGH_CALLS,
    env_step_calls,
    fraction,
    number,
    outermost,
    policy_calls,
    ratio,
)
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many

SEVERAL = 2.0
"""Teacher calls per policy call. A batched teacher comes out at 1, or below if it is switched off after a while."""


def teacher_one_by_one(facts: Facts) -> Finding | None:
    teachers = facts.of_category("teacher")
    within = outermost(facts.breakdown.rows, lambda row: row.category == "teacher", ("learning",))
    share = fraction(within.total_ns, facts.breakdown.training_ns)
    if not teachers or share < CONSIDERABLE:
        return None
    # With `teacher_total` around many `agent_calls`, the operation that is called per environment has the most calls.
    caller = max(teachers, key=lambda operation: number(operation.calls))
    policy = policy_calls(facts)
    reference = max(policy.calls, key=lambda name: policy.calls[name], default="env_step")
    reference_calls = policy.most_calls or env_step_calls(facts)
    each = ratio(*_while_teaching(facts, caller.operation, reference, caller.calls, reference_calls))
    if caller.calls < ENOUGH_CALLS or each < SEVERAL:
        return None
    names = tuple(dict.fromkeys((caller.operation, *within.operations)))
    return Finding(
        rule="teacher_one_by_one",
        cause=f"The teacher is called {many(each, 'time')} per call of {reference}, and takes "
        f"{as_percent(share)} of the training time.",
        place=loop_of(facts, *names),
        operations=names,
        evidence=(
            f"{caller.operation} has {count(caller.calls)} calls, {reference} has {count(reference_calls)}. While the "
            f"teacher was in use, the ratio was {count(round(each, 1))} to 1.",
            f"A teacher call takes {duration(number(caller.mean_ns))} on average.",
        ),
        change="Call the teacher once for the whole batch of observations. Vectorise a scripted teacher over the "
        "environments, or cache its answers for repeated states.",
        gain=gain_if(facts, dict.fromkeys(within.operations, Left(1.3 / each, 1 / each, min(0.8, 4 / each)))),
        check=compare_with_change(facts),
    )


def _while_teaching(
    facts: Facts, teacher: str, reference: str, teacher_calls: float, reference_calls: float
) -> tuple[float, float]:
    """Calls of both in the iterations that used the teacher: it may have been switched off after a while."""
    columns = (facts.series.calls.get(name, ()) for name in (teacher, reference))
    both = [pair for pair in zip(*columns) if min(pair) > 0] or [(teacher_calls, reference_calls)]
    return sum(number(taught) for taught, _ in both), sum(number(called) for _, called in both)
