"""Iterations, environment steps and episodes of a stable-baselines3 training."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import Any

from numpy import count_nonzero

from rlprof.ledger.profiler import Profiler


class Iterations:
    """The iterations that one attached probe sees. A thread that collects while it collects, as in a subclass's super()
    or in a training that a callback starts, is still in the same iteration."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self._ledger = profiler.ledger
        self._rollout = profiler.profile("rollout")
        self._collecting: set[int] = set()
        self._reading: set[int] = set()
        """Buffers that are being read."""

    def collect(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """For collect_rollouts: a rollout, with which an iteration begins."""

        @wraps(original)
        def collect_rollouts(model: Any, *args: Any, **kwargs: Any) -> Any:
            thread = get_ident()
            if thread in self._collecting:
                return original(model, *args, **kwargs)
            self._try(self._begin, model)
            self._collecting.add(thread)
            try:
                with self._rollout:
                    result = original(model, *args, **kwargs)
            finally:
                self._collecting.discard(thread)
            if result is False or getattr(result, "continue_training", True) is False:
                self._try(self._count_last, *args, **kwargs)
            return result

        return collect_rollouts

    def read(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """For a buffer's get, a generator: with it begins an epoch, one pass over what was collected."""
        timed = self._profiler.time_function(original, "buffer_get", outermost=True)

        @wraps(original)
        def get(buffer: Any, *args: Any, **kwargs: Any) -> Any:
            inside = id(buffer) in self._reading  # of what a subclass has
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
        """For on_training_end: what a program does after learn() is no part of its last iteration."""

        @wraps(original)
        def on_training_end(callback: Any) -> Any:
            if get_ident() not in self._collecting:
                self._ledger.iteration(True)
            return original(callback)

        return on_training_end

    def _begin(self, model: Any) -> None:
        if model.num_timesteps == 0:
            self._plan(model)
        # Before learning starts nothing is updated: all of that is one iteration, together with the first update.
        if not 0 < model.num_timesteps <= getattr(model, "learning_starts", 0):
            self._profiler.iteration()

    def _plan(self, model: Any) -> None:
        """Announce the number of iterations, where each collects the same number of steps."""
        steps = getattr(model, "n_steps", None)
        if isinstance(steps, int) and steps > 0 and model._total_timesteps:
            iterations = -(-model._total_timesteps // (steps * model.n_envs))
            epochs = iterations * getattr(model, "n_epochs", 1)
            self._profiler.plan(iteration=iterations, epoch=epochs, env_step=iterations * steps)

    def _count(self, dones: Any) -> None:
        self._ledger.add_steps(len(dones))
        if ended := count_nonzero(dones):
            self._ledger.add_episodes(int(ended))

    def _count_last(self, _env: Any, callback: Any, *_args: Any, **_kwargs: Any) -> None:
        """A callback that ends the training does so before the step is counted."""
        self._count(callback.locals["dones"])

    def _try(self, function: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except Exception as error:
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        self._profiler.warn("iterations and steps of stable-baselines3 are not all counted", error)
