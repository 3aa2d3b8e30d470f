"""gymnasium: steps, resets and rendering of every environment; steps and episodes are counted.

Only the outermost is timed. An environment inside a vector, or inside a wrapper, is part of what steps it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rlprof.probes.counting import Tally
from rlprof.probes.patches import Patches, below
from rlprof.probes.phases import Phases, phases_of
from rlprof.probes.probe import Probe


class _Environments:
    """What is done to environment classes, those that exist and those to come."""

    def __init__(self, patches: Patches, vector: type) -> None:
        self._patches = patches
        self._vector = vector
        self._phases: Phases = phases_of(patches)
        self._steps = Tally(patches, "add_steps")
        self._episodes = Tally(patches, "add_episodes")

    def watch(self, base: Any) -> None:
        """A base class: everything below it, and what will be."""
        for cls in (base, *below(base)):
            self.attach(cls)
        before = vars(base).get("__init_subclass__")

        def __init_subclass__(cls: Any, /, **kwargs: Any) -> None:  # noqa: N807 - its name
            if before is None:
                super(base, cls).__init_subclass__(**kwargs)
            else:
                before.__get__(None, cls)(**kwargs)
            try:
                self.attach(cls)
            except Exception as error:
                self._patches.profiler._hooks.warn(f"{cls.__name__} could not be attached to", error)

        self._patches.put(base, "__init_subclass__", classmethod(__init_subclass__))

    def attach(self, cls: type) -> None:
        is_vector = issubclass(cls, self._vector)
        for attribute, operation, make in (
            ("step", "env_step", self._step_of_vector if is_vector else self._step),
            ("reset", "env_reset", self._reset),
        ):
            if self._is_method(cls, attribute):
                self._patches.around(cls, attribute, operation, make)
        if self._is_method(cls, "render"):
            self._patches.time(cls, "render", "env_render", outermost=True)

    def attach_waits(self, cls: type) -> None:
        """AsyncVectorEnv: what waits for its workers."""
        self._patches.around(cls, "step_wait", "env_wait", self._step_wait, wait=True)
        for attribute in ("reset_wait", "call_wait"):
            self._patches.time(cls, attribute, "env_wait", outermost=True, wait=True)

    def _is_method(self, cls: type, attribute: str) -> bool:
        """Whether it is the class's own, and nothing special that a wrapper would break or time twice."""
        value = vars(cls).get(attribute)
        special = (staticmethod, classmethod, property, type, self._patches.profiler._module.Timed)
        return callable(value) and hasattr(type(value), "__get__") and not isinstance(value, special)

    def _step(self, function: Callable[..., Any], span: Any) -> Callable[..., Any]:
        phases = self._phases

        def step(env: Any, *args: Any, **kwargs: Any) -> Any:
            driving = phases.before_env(1)
            try:
                with span:
                    result = function(env, *args, **kwargs)
            finally:
                if driving:
                    phases.stepping = False
            self._count(driving, 1, result)
            return result

        return step

    def _step_of_vector(self, function: Callable[..., Any], span: Any) -> Callable[..., Any]:
        phases = self._phases

        def step(env: Any, *args: Any, **kwargs: Any) -> Any:
            envs = env.num_envs
            driving = phases.before_env(envs)
            try:
                with span:
                    result = function(env, *args, **kwargs)
            finally:
                if driving:
                    phases.stepping = False
            self._count(driving, envs, result)
            return result

        return step

    def _step_wait(self, function: Callable[..., Any], span: Any) -> Callable[..., Any]:
        """For those who call step_async and step_wait themselves: inside step, it has counted."""

        def step_wait(env: Any, *args: Any, **kwargs: Any) -> Any:
            with span:
                result = function(env, *args, **kwargs)
            self._count(False, env.num_envs, result)
            return result

        return step_wait

    def _reset(self, function: Callable[..., Any], span: Any) -> Callable[..., Any]:
        phases = self._phases

        def reset(env: Any, *args: Any, **kwargs: Any) -> Any:
            driving = phases.before_env(0)
            try:
                with span:
                    return function(env, *args, **kwargs)
            finally:
                if driving:
                    phases.stepping = False

        return reset

    def _count(self, driving: bool, envs: int, result: Any) -> None:
        """Of the driver's own steps, or of threads that it lets step. A worker process's are counted where it is
        driven."""
        phases = self._phases
        if not phases.on or not (driving or (not phases.stepping and self._patches.profiler.driver)):
            return
        self._steps.add(envs)
        try:
            _, _, terminated, truncated, _ = result
            if terminated is truncated is False:
                return
            if terminated is True or truncated is True:
                self._episodes.add(1)
            # Most steps of a vector end no episode, and asking for the bytes is quicker than counting.
            elif (terminated.tobytes() + truncated.tobytes()).strip(b"\0"):
                self._episodes.add(int(sys.modules["numpy"].count_nonzero(terminated | truncated)))
        except Exception as error:
            self._patches.profiler._hooks.warn("episodes could not be counted", error)


def _attach(gymnasium: ModuleType, patches: Patches) -> None:
    vector = gymnasium.vector
    environments = _Environments(patches, vector.VectorEnv)
    for base in (gymnasium.Env, vector.VectorEnv):
        environments.watch(base)
    environments.attach_waits(vector.AsyncVectorEnv)


PROBE = Probe("gymnasium", {"gymnasium": _attach}, since=(0, 29), before=(2,), generic=True)
