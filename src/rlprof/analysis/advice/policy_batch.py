"""The policy chooses one action per call although several environments are stepped, or could be."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import beside, loop_of
from rlprof.analysis.advice.lookup import (
    CONSIDERABLE,
    ENOUGH_CALLS,
    acting_calls,
    env_step_calls,
    number,
    policy_calls,
    ratio,
    share_of,
)
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many
from rlprof.analysis.topology import own

SEVERAL = 1.8
"""Env steps per step of the loop, or policy calls per step of the loop. One more call than that is batched."""

MOST_ENVS = 0.8
"""Least fraction of the environments that the policy is called for one by one. An actor and a critic are two calls."""

ON_POLICY_STEPS = 64
"""Steps per iteration. Trainings that learn after each step (DQN, SAC) gain nothing from more environments alone."""

REPLAY = ("replay_sample", "batch_preparation")
"""Operations of trainings that learn from a replay buffer."""

LARGE_SHARE = 0.25
"""Least share of the policy to advise more environments: it changes the training, so it must be worth it."""

SHORT_NS = 2_000_000
"""A longer call computes, and larger batches do not help: a convolutional network took 0.7 ms for 1, 26 ms for 64."""

BATCH_COST = (1.0, 2.5)
"""Cost of one call for all environments relative to one for a single one: 54 us for 1 observation, 75 us for 8 and
121 us for 64 in an MLP of 2 x 64. What stands around the network (a distribution, a sample) costs as much for 8 as
for 1."""


def policy_batch(facts: Facts) -> Finding | None:
    found = policy_calls(facts)
    calls, loop = float(found.most_calls), float(env_step_calls(facts))
    steps = number(facts.progress.steps)
    policy = [operation for operation in facts.of_category("policy") if operation.operation in found.calls]
    share = share_of(facts, facts.of_category("policy"))
    if calls < ENOUGH_CALLS or not steps or not loop or not policy or share < CONSIDERABLE:
        return None
    largest = max(policy, key=lambda operation: number(operation.ledger_ns))
    if number(largest.p50_ns) > SHORT_NS:
        return None
    together = ratio(steps, loop)
    listed = number(facts.evidence.together)
    if together >= SEVERAL and ratio(calls, loop) >= max(SEVERAL, MOST_ENVS * together):
        return _one_by_one(facts, largest.operation, calls, steps, ratio(calls, loop), share, number(largest.p50_ns))
    if listed >= SEVERAL and acting_calls(facts) >= 0.8 * steps:
        return _one_by_one(facts, largest.operation, calls, steps, listed, share, number(largest.p50_ns))
    per_iteration = number(facts.progress.steps_per_iteration)
    from_memory = any(facts.operation(name) for name in REPLAY) or bool(facts.evidence.buffers)
    on_policy = per_iteration >= ON_POLICY_STEPS and not from_memory and acting_calls(facts) >= 0.8 * steps
    if together < SEVERAL and share >= LARGE_SHARE and on_policy:
        return _single(facts, largest.operation, calls, steps, share, number(largest.p50_ns))
    return None


def _one_by_one(
    facts: Facts, name: str, calls: float, steps: float, each: float, share: float, median_ns: float
) -> Finding:
    least, most = (cost / each for cost in BATCH_COST)
    around = beside(facts, name)
    share += sum(part * share_of(facts, [row]) for phase, part in around.items() if (row := facts.operation(phase)))
    return Finding(
        rule="policy_per_env",
        cause=f"The policy is called {many(round(each, 1), 'time')} per step of the environments instead of once: "
        f"{as_percent(share)} of the training time.",
        place=loop_of(facts, name),
        operations=(name,),
        evidence=(
            f"{name} has {count(calls)} calls for {count(steps)} env steps.",
            f"Half of the calls took less than {duration(median_ns)}, which is mostly the cost of starting a call.",
        ),
        change="Call the policy once for all environments, and choose all actions at once: "
        "`logits = policy(torch.as_tensor(np.stack(observations)))`, `actions = Categorical(logits=logits).sample()`.",
        gain=gain_if(facts, _with(around, name, Left((least + most) / 2, least, min(0.95, most * 1.5)))),
        check=compare_with_change(facts),
    )


def _single(facts: Facts, name: str, calls: float, steps: float, share: float, median_ns: float) -> Finding:
    return Finding(
        rule="tiny_batch_inference",
        cause=f"The policy chooses one action per call and takes {as_percent(share)} of the training time.",
        place=loop_of(facts, name),
        operations=(name,),
        evidence=(
            f"{name} has {count(calls)} calls for {count(steps)} env steps.",
            f"Half of the calls took less than {duration(median_ns)}, which is mostly the cost of starting a call.",
        ),
        change="Step 8 or more environments per call of the policy: `gymnasium.make_vec(name, num_envs=8)`, or "
        "`make_vec_env(name, n_envs=8)` in stable-baselines3, with the rollout length divided by as many.",
        gain=gain_if(facts, _with(beside(facts, name), name, Left(0.2, 0.12, 0.4))),
        check=compare_with_change(facts),
    )


def _with(around: dict[str, float], name: str, left: Left) -> dict[str, Left]:
    """What is left of the operation, and of the code around it in the same calls."""
    parts = {
        own(phase): Left(*(1 - part * (1 - end) for end in (left.estimate, left.least, left.most)))
        for phase, part in around.items()
    }
    return {name: left, **parts}
