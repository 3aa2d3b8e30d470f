"""Iterations, environment steps and episodes of a stable-baselines3 training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from threading import get_ident
from typing import Any

from numpy import count_nonzero

from rlprof.ledger.catalogue import PREFILL
from rlprof.probes.patches import Patches
from rlprof.probes.phases import phases_of


def _fills_buffer(model: Any) -> bool:
    """True if the steps that are about to be collected only fill the replay buffer: nothing is learned after them.

    The length of an episode is not known in advance. It fills the buffer if it begins before learning starts.
    """
    train_freq = getattr(model, "train_freq", None)
    frequency = getattr(train_freq, "frequency", 1)
    by_step = isinstance(frequency, int) and getattr(getattr(train_freq, "unit", None), "value", "step") == "step"
    steps = frequency * model.n_envs if by_step else 1
    return bool(model.num_timesteps + steps <= getattr(model, "learning_starts", 0))


class Iterations:
    """The iterations that one attached probe sees. If a thread collects while it already collects, as by super() or in
    a training that a callback starts, it stays in the same iteration."""

    def __init__(self, patches: Patches) -> None:
        self._profiler = patches.profiler
        self._loop = phases_of(patches).loop
        self._ledger = self._profiler.ledger
        self._rollout = self._profiler.profile("rollout")
        self._prefill = self._profiler.profile(PREFILL)
        self._attempt = partial(
            patches.attempt, otherwise="iterations and steps of stable-baselines3 are not all counted"
        )
        self._collecting: set[int] = set()
        self._reading: set[int] = set()
        """Ids of the buffers that are being read."""

    def collect(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Replaces collect_rollouts: a rollout, which begins an iteration."""

        @wraps(original)
        def collect_rollouts(model: Any, *args: Any, **kwargs: Any) -> Any:
            thread = get_ident()
            if thread in self._collecting:
                return original(model, *args, **kwargs)
            self._attempt(self._begin, model)
            fills = self._loop.filling
            self._collecting.add(thread)
            try:
                with self._prefill if fills else self._rollout:
                    result = original(model, *args, **kwargs)
            finally:
                self._loop.filling = False
                self._collecting.discard(thread)
            ended = result is False or getattr(result, "continue_training", True) is False
            if fills and not ended:
                self._attempt(self._end_prefill, model)
            elif ended and not fills:
                self._attempt(lambda: self._count_last(*args, **kwargs))
            return result

        return collect_rollouts

    def read(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Replaces a buffer's get, a generator. It begins an epoch, which is one pass over the rollout's data."""
        timed = self._profiler.time_function(original, "buffer_get", outermost=True)

        @wraps(original)
        def get(buffer: Any, *args: Any, **kwargs: Any) -> Any:
            inside = id(buffer) in self._reading  # called by a subclass's get
            if not inside:
                self._reading.add(id(buffer))
                self._profiler.announce("epoch")
            try:
                return (yield from timed(buffer, *args, **kwargs))
            finally:
                if not inside:
                    self._reading.discard(id(buffer))

        return get

    def end(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Replaces on_training_end. The program's work after learn() is not part of the last iteration."""

        @wraps(original)
        def on_training_end(callback: Any) -> Any:
            if get_ident() not in self._collecting:
                self._ledger.iteration(True)
            return original(callback)

        return on_training_end

    def _begin(self, model: Any) -> None:
        if model.num_timesteps == 0:
            self._plan(model)
        self._loop.filling = _fills_buffer(model)
        if not self._loop.filling:
            self._profiler.iteration()

    def _end_prefill(self, model: Any) -> None:
        """An update follows if learning has started, which happens only within an episode."""
        if model.num_timesteps > model.learning_starts:
            self._profiler.iteration()

    def _plan(self, model: Any) -> None:
        """Announce the number of iterations, if each collects the same number of steps."""
        steps = getattr(model, "n_steps", None)
        if isinstance(steps, int) and steps > 0 and model._total_timesteps:
            iterations = -(-model._total_timesteps // (steps * model.n_envs))
            epochs = iterations * getattr(model, "n_epochs", 1)
            self._profiler.plan(iteration=iterations, epoch=epochs, env_step=iterations * steps)

    def _count_last(self, _env: Any, callback: Any, *_args: Any, **_kwargs: Any) -> None:
        """Count the last step. A callback that ends the training does so before the step is counted."""
        dones = callback.locals["dones"]
        self._ledger.add_steps(len(dones))
        if ended := count_nonzero(dones):
            self._ledger.add_episodes(int(ended))
