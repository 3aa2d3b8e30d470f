"""How fast did the training go? Steps per second, iterations, episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlprof.ledger.catalogue import EVALUATION, PREFILL, STARTUP, SUSPENDED
from rlprof.ledger.histogram import quantile
from rlprof.ledger.snapshot import Node, Snapshot
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
    suspended_ns: int
    """The process was stopped. Each stop is known to within 0.05 s."""
    after_ns: int
    """After the last step, the last learning and the last iteration."""
    iterations: int
    steps: int
    """Steps of all environments together."""
    episodes: int
    steps_per_second: float | None
    """Over `training_ns` without prefill and evaluation, whose steps are not counted either."""
    iteration_ns: Spread | None
    """Durations of iterations that have ended."""
    steps_per_iteration: float | None
    seconds_per_episode: float | None
    steps_per_episode: float | None

    @property
    def training_ns(self) -> int:
        """From the beginning of the training to its end, without stops of the process."""
        return self.wall_ns - self.startup_ns - self.suspended_ns - self.after_ns


def progress(snapshot: Snapshot, iterations: Sequence[IterationRow], after_ns: int = 0) -> Progress:
    startup = snapshot.account(STARTUP).ledger_ns
    prefill, evaluation = _inside(snapshot, PREFILL), _inside(snapshot, EVALUATION)
    suspended = snapshot.account(SUSPENDED).ledger_ns
    # A run that was paused may have trained last before that.
    after = after_ns if after_ns < snapshot.wall_ns - startup - suspended else 0
    seconds = max(0, snapshot.wall_ns - startup - suspended - after - prefill - evaluation) / 1e9
    steps, episodes = max(0, snapshot.steps), max(0, snapshot.episodes)
    counted_steps = sum(one.steps for one in iterations)
    count = sum(one.last - one.first + 1 for one in iterations)
    return Progress(
        wall_ns=snapshot.wall_ns,
        startup_ns=startup,
        prefill_ns=prefill,
        evaluation_ns=evaluation,
        suspended_ns=suspended,
        after_ns=after,
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
    by_id = {node.id: node for node in snapshot.nodes}
    on_driver = {lane.id for lane in snapshot.lanes if lane.on_driver}

    def is_outermost(node: Node) -> bool:
        above = None if node.parent is None else by_id.get(node.parent)
        return above is None or (above.operation not in (PREFILL, EVALUATION) and is_outermost(above))

    nodes = (node for node in snapshot.nodes if node.operation == operation and node.lane in on_driver)
    return sum(node.wall_ns for node in nodes if is_outermost(node))


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
