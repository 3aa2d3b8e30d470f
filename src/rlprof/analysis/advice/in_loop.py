"""Evaluation, checkpoints, logging and rendering that run so often that the training waits for them."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import loop_of, place_of
from rlprof.analysis.advice.lookup import CONSIDERABLE, env_step_calls, fraction, number, outermost, ratio
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many

FEWEST_CALLS = 3
"""Most trainings save and evaluate at the start and at the end. Two calls are normal."""

FEW_STEPS = 32
"""Env steps per iteration of off-policy trainings, which learn every few steps."""


@dataclass(frozen=True, slots=True)
class Kind:
    rule: str
    operations: tuple[str, ...]
    """Names of operations; with a category, all of that category."""
    what: str
    """Subject and verb of the cause."""
    change: str
    category: str = ""
    callback: str = ""
    """The callback of stable-baselines3 that does this, and what to add if the training uses it."""
    with_callback: str = ""


KINDS = (
    Kind(
        "evaluation_too_often",
        ("evaluation",),
        "Evaluation takes",
        "Evaluate every tenth time, or with fewer episodes. Or evaluate in another process from a checkpoint.",
        callback="EvalCallback",
        with_callback="Raise `eval_freq` and lower `n_eval_episodes` of `EvalCallback`.",
    ),
    Kind(
        "checkpoint_too_often",
        ("checkpoint",),
        "Saving checkpoints takes",
        "Save every tenth time, only what you need to resume, and keep the replay buffer out of it.",
        callback="CheckpointCallback",
        with_callback="Raise `save_freq` of `CheckpointCallback`.",
    ),
    Kind(
        "rendering",
        ("render", "env_render", "observation_render"),
        "Rendering takes",
        "Remove the calls of `render()` from training, and make the environment without `render_mode`. Or render "
        "only in the episodes that you record: "
        "`RecordVideo(env, folder, episode_trigger=lambda episode: episode % 100 == 0)`.",
        category="rendering",
    ),
    Kind(
        "logging_in_loop",
        ("logging", "callback", "telemetry"),
        "Logging and callbacks take",
        "Log once per iteration, not per step or minibatch, and only values that are already numbers.",
    ),
)


def in_loop(facts: Facts) -> list[Finding]:
    return [finding for kind in KINDS if (finding := _look_for(facts, kind)) is not None]


def _look_for(facts: Facts, kind: Kind) -> Finding | None:
    found = outermost(
        facts.breakdown.rows,
        lambda row: row.operation in kind.operations or (bool(kind.category) and row.category == kind.category),
    )
    share = fraction(found.total_ns, facts.breakdown.training_ns)
    calls = found.most_calls
    if share < CONSIDERABLE or calls < FEWEST_CALLS:
        return None
    name = found.operations[0]
    # Rendering is called by the environment: the line that draws says more than the loop around it.
    drawn = place_of(facts, *found.operations) if kind.category == "rendering" else None
    place = drawn or loop_of(facts, *found.operations, outer=True)
    evidence = [
        f"{name}: {count(calls)} calls, {_how_often(facts, calls)}. "
        f"Each takes {duration(ratio(found.ledger_ns[name], found.calls[name]))} with what it calls.",
        f"Together: {duration(found.total_ns)} of {duration(facts.breakdown.training_ns)} of training.",
    ]
    if place is not None:
        evidence.append(f"It is called from {place.where} in {place.function}.")
    return Finding(
        rule=kind.rule,
        cause=f"{kind.what} {as_percent(share)} of the training time: {_how_often(facts, calls)}.",
        place=place,
        operations=found.operations,
        evidence=tuple(evidence),
        change=f"{kind.change} {kind.with_callback}" if _uses(facts, kind.callback) else kind.change,
        gain=gain_if(facts, dict.fromkeys(found.operations, Left(0.1, 0.0, 0.4))),
        check=compare_with_change(facts),
    )


def _uses(facts: Facts, callback: str) -> bool:
    """True if a method of this class of stable-baselines3 was sampled."""
    every = (line for lines in facts.code.lines.values() for line in lines)
    return bool(callback) and any(
        name.startswith("stable_baselines3") and f":{callback}." in name for line in every for name in line.below
    )


def _how_often(facts: Facts, calls: int) -> str:
    steps, iterations = env_step_calls(facts), number(facts.progress.iterations)
    if steps > 0 and calls * 2 >= steps:
        stepped = number(facts.progress.steps)
        if stepped and 0.9 * stepped <= calls <= 1.1 * stepped:
            return "once per step of each environment"
        return f"{many(round(ratio(calls, steps), 1), 'time')} per call of env_step"
    if iterations and 0.9 <= ratio(calls, iterations) <= 1.1:
        return "once per iteration"
    if calls >= iterations:
        return f"{count(round(ratio(calls, iterations), 1))} per iteration" if iterations else f"{count(calls)} times"
    stepped = number(facts.progress.steps)
    if stepped and ratio(stepped, iterations) <= FEW_STEPS:  # nobody thinks of these as iterations
        return f"once every {count(round(ratio(stepped, calls)))} env steps"
    return f"once every {count(round(ratio(iterations, calls), 1))} iterations"
