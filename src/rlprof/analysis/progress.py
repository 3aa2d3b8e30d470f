"""How fast did the training go? Steps per second, iterations, episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlprof.analysis.training import WARM_UP, Training
from rlprof.ledger.catalogue import AFTER_TRAINING, EVALUATION, PREFILL, STARTUP, SUSPENDED
from rlprof.ledger.histogram import quantile
from rlprof.ledger.snapshot import Snapshot
from rlprof.session.reader import IterationRow


@dataclass(frozen=True, slots=True)
class Spread:
    """Distribution of a time over the iterations, in ns. Quantiles are exact to within 1.1 %."""

    mean_ns: float
    p50_ns: float
    p95_ns: float
    min_ns: float
    max_ns: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Parts of the wall time, counts and rates. A rate is None if nothing was counted."""

    wall_ns: int
    startup_ns: int
    prefill_ns: int
    """Filling a replay buffer before the first learning."""
    evaluation_ns: int
    """Evaluation within the training time."""
    suspended_ns: int
    """The process was stopped. Each stop is known to within 0.05 s."""
    after_ns: int
    """After the last step, the last learning and the last iteration."""
    warm_up_ns: int
    """What the first iteration took longer than the others, if that stands out."""
    training_ns: int
    """The training time, as in the breakdown."""
    iterations: int
    steps: int
    """Steps of all environments together."""
    episodes: int
    steps_per_second: float | None
    """Over `training_ns` without evaluation, whose steps are not counted either."""
    iteration_ns: Spread | None
    """Durations of iterations that have ended."""
    steps_per_iteration: float | None
    seconds_per_episode: float | None
    steps_per_episode: float | None


def progress(training: Training, iterations: Sequence[IterationRow]) -> Progress:
    snapshot = training.snapshot
    evaluation = min(snapshot.wall_ns, _inside(snapshot, EVALUATION))
    seconds = (snapshot.wall_ns - evaluation) / 1e9
    steps, episodes = max(0, snapshot.steps), max(0, snapshot.episodes)
    counted_steps = sum(one.steps for one in iterations)
    count = sum(one.last - one.first + 1 for one in iterations)
    return Progress(
        wall_ns=snapshot.wall_ns + sum(part.ns for part in training.outside),
        startup_ns=training.outside_ns(STARTUP),
        prefill_ns=training.outside_ns(PREFILL),
        evaluation_ns=evaluation,
        suspended_ns=training.outside_ns(SUSPENDED),
        after_ns=training.outside_ns(AFTER_TRAINING),
        warm_up_ns=training.outside_ns(WARM_UP),
        training_ns=snapshot.wall_ns,
        iterations=snapshot.iterations,
        steps=steps,
        episodes=episodes,
        steps_per_second=steps / seconds if steps and seconds else None,
        iteration_ns=_spread(snapshot, iterations),
        steps_per_iteration=counted_steps / count if count and counted_steps else None,
        seconds_per_episode=seconds / episodes if episodes else None,
        steps_per_episode=steps / episodes if episodes and steps else None,
    )


def _inside(snapshot: Snapshot, operation: str) -> int:
    """How long the driver was inside an operation, no matter what any lane did meanwhile."""
    inside: set[int | None] = set()
    total = 0
    for node in snapshot.net_nodes:  # parents come first
        if node.operation == operation or node.parent in inside:
            inside.add(node.id)
            total += node.self_ns if snapshot.lanes[node.lane].on_driver else 0
    return total


def _spread(snapshot: Snapshot, iterations: Sequence[IterationRow]) -> Spread | None:
    """Stored iterations may be merged, and may include time in which the process was stopped, so the ledger keeps its
    own histogram. If each iteration is stored by itself, the quantiles are exact."""
    histogram = snapshot.iteration_histogram
    count = sum(histogram.values())
    if not count:
        return None
    mean = snapshot.iteration_sum_ns / count
    shortest, longest = float(snapshot.iteration_min_ns), float(snapshot.iteration_max_ns)
    if len(iterations) == count and sum(one.wall_ns for one in iterations) == snapshot.iteration_sum_ns:
        single = sorted(float(one.wall_ns) for one in iterations)
        p50, p95 = (single[int(q * (count - 1))] for q in (0.5, 0.95))
    else:
        quantiles = [quantile(histogram, q) for q in (0.5, 0.95)]
        p50, p95 = (min(max(ns, shortest), longest) for ns in quantiles if ns is not None)
    return Spread(mean, p50, p95, shortest, longest)
