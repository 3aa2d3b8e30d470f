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
    """How a figure of the iterations is spread. ns; quantiles are known to within 1.1 %."""

    mean_ns: float
    p50_ns: float
    p95_ns: float
    min_ns: float
    max_ns: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts and rates. A rate is None where nothing was counted."""

    wall_ns: int
    startup_ns: int
    """Of it, before the training began."""
    prefill_ns: int
    """Of it, filling a replay buffer before anything was learned."""
    evaluation_ns: int
    """Of it, evaluating."""
    suspended_ns: int
    """Of it, while the process was stopped; each stop is known to within 0.05 s."""
    after_ns: int
    """Of it, after the last step, the last learning and the last iteration."""
    iterations: int
    steps: int
    """Of all environments together."""
    episodes: int
    steps_per_second: float | None
    """While the training lasted, without prefill and evaluation, whose steps are not counted either."""
    iteration_ns: Spread | None
    """Of iterations that have ended."""
    steps_per_iteration: float | None
    seconds_per_episode: float | None
    steps_per_episode: float | None

    @property
    def training_ns(self) -> int:
        """From the beginning of the training to its end, while the process ran."""
        return self.wall_ns - self.startup_ns - self.suspended_ns - self.after_ns


def progress(snapshot: Snapshot, turns: Sequence[IterationRow], after_ns: int = 0) -> Progress:
    startup = sum(account.ledger_ns for account in snapshot.accounts if account.operation == STARTUP)
    prefill, evaluation = _inside(snapshot, PREFILL), _inside(snapshot, EVALUATION)
    suspended = snapshot.account(SUSPENDED).ledger_ns
    # A run that was paused may have trained last before that.
    after = after_ns if after_ns < snapshot.wall_ns - startup - suspended else 0
    seconds = max(0, snapshot.wall_ns - startup - suspended - after - prefill - evaluation) / 1e9
    steps, episodes = max(0, snapshot.steps), max(0, snapshot.episodes)
    in_turns = sum(turn.steps for turn in turns)
    count = sum(turn.last - turn.first + 1 for turn in turns)
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
        iteration_ns=_spread(snapshot, turns),
        steps_per_iteration=in_turns / count if count and in_turns else None,
        seconds_per_episode=seconds / episodes if episodes else None,
        steps_per_episode=steps / episodes if episodes and steps else None,
    )


def _inside(snapshot: Snapshot, operation: str) -> int:
    """How long the driver was inside an operation, whatever it or others did meanwhile."""
    by_id = {node.id: node for node in snapshot.nodes}
    on_driver = {lane.id for lane in snapshot.lanes if lane.on_driver}

    def is_outermost(node: Node) -> bool:
        above = None if node.parent is None else by_id.get(node.parent)
        return above is None or (above.operation not in (PREFILL, EVALUATION) and is_outermost(above))

    nodes = (node for node in snapshot.nodes if node.operation == operation and node.lane in on_driver)
    return sum(node.wall_ns for node in nodes if is_outermost(node))


def _spread(snapshot: Snapshot, turns: Sequence[IterationRow]) -> Spread | None:
    """Turns may be several iterations merged, and have the time in which the process was stopped: so the ledger has
    counted. Where each iteration is known by itself, so are the quantiles, exactly."""
    histogram = snapshot.iteration_histogram
    count = sum(histogram.values())
    if not count:
        return None
    mean = snapshot.iteration_sum_ns / count
    shortest, longest = float(snapshot.iteration_min_ns), float(snapshot.iteration_max_ns)
    if len(turns) == count and sum(turn.wall_ns for turn in turns) == snapshot.iteration_sum_ns:
        single = sorted(float(turn.wall_ns) for turn in turns)
        p50, p95 = (single[int(q * (count - 1))] for q in (0.5, 0.95))
    else:
        quantiles = [quantile(histogram, q) for q in (0.5, 0.95)]
        p50, p95 = (min(max(ns, shortest), longest) for ns in quantiles if ns is not None)
    return Spread(mean, p50, p95, shortest, longest)
