"""How fast did the training go? Steps per second, iterations, episodes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from rlprof.ledger.catalogue import STARTUP
from rlprof.ledger.snapshot import Snapshot
from rlprof.session.reader import Turn


@dataclass(frozen=True, slots=True)
class Spread:
    """How a figure of the iterations is spread. ns."""

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
    after_ns: int
    """Of it, after the last step, the last learning and the last iteration."""
    iterations: int
    steps: int
    """Of all environments together."""
    episodes: int
    steps_per_second: float | None
    """While the training lasted."""
    iteration_ns: Spread | None
    """Of iterations that have ended; merged ones count with their mean."""
    steps_per_iteration: float | None
    seconds_per_episode: float | None
    steps_per_episode: float | None

    @property
    def training_ns(self) -> int:
        """How long the training lasted."""
        return self.wall_ns - self.startup_ns - self.after_ns


def progress(snapshot: Snapshot, turns: Sequence[Turn], after_ns: int = 0) -> Progress:
    startup = sum(account.ledger_ns for account in snapshot.accounts if account.operation == STARTUP)
    # A run that was paused may have trained last before that.
    after = after_ns if after_ns < snapshot.wall_ns - startup else 0
    seconds = (snapshot.wall_ns - startup - after) / 1e9
    steps, episodes = max(0, snapshot.steps), max(0, snapshot.episodes)
    in_turns = sum(turn.steps for turn in turns)
    count = sum(turn.last - turn.first + 1 for turn in turns)
    return Progress(
        wall_ns=snapshot.wall_ns,
        startup_ns=startup,
        after_ns=after,
        iterations=snapshot.iterations,
        steps=steps,
        episodes=episodes,
        steps_per_second=steps / seconds if steps and seconds else None,
        iteration_ns=_spread(turns),
        steps_per_iteration=in_turns / count if count and in_turns else None,
        seconds_per_episode=seconds / episodes if episodes else None,
        steps_per_episode=steps / episodes if episodes and steps else None,
    )


def _spread(turns: Sequence[Turn]) -> Spread | None:
    weighted = sorted((turn.wall_ns / (turn.last - turn.first + 1), turn.last - turn.first + 1) for turn in turns)
    count = sum(weight for _, weight in weighted)
    if not count:
        return None

    seen = list(accumulate(weight for _, weight in weighted))

    def quantile(q: float) -> float:
        return weighted[bisect_right(seen, q * (count - 1))][0]

    mean = sum(ns * weight for ns, weight in weighted) / count
    return Spread(mean, quantile(0.5), quantile(0.95), weighted[0][0], weighted[-1][0])
