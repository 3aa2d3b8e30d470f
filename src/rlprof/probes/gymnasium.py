"""gymnasium: steps, resets and rendering of every environment; steps and episodes are counted.

Only the outermost is timed. An environment inside a vector, or inside a wrapper, is part of what steps it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from rlprof.probes.counting import let_others_count
from rlprof.probes.patches import Patches, below
from rlprof.probes.phases import phases_of
from rlprof.probes.probe import Probe


class _Environments:
    """What is done to environment classes, those that exist and those to come."""

    def __init__(self, patches: Patches, gymnasium: ModuleType) -> None:
        self._patches = patches
        self._vector = gymnasium.vector.VectorEnv
        self._handing_on = (gymnasium.Wrapper, getattr(gymnasium.vector, "VectorWrapper", None))
        """What they call in turn is timed. Wrappers call them at every step, by super()."""
        self._loop = phases_of(patches).loop
        let_others_count(patches, self._loop)

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
        if cls in self._handing_on:
            return
        step = "vector_step" if issubclass(cls, self._vector) else "step"
        for attribute, operation, kind in (("step", "env_step", step), ("reset", "env_reset", "reset")):
            if self._is_method(cls, attribute):
                self._patches.follow(cls, attribute, operation, self._loop, kind)
        if self._is_method(cls, "render"):
            self._patches.time(cls, "render", "env_render", outermost=True)

    def attach_waits(self, cls: type) -> None:
        """AsyncVectorEnv: what waits for its workers. Inside step, it has counted; others call step_async and step_wait
        themselves."""
        self._patches.follow(cls, "step_wait", "env_wait", self._loop, "step_wait", wait=True)
        for attribute in ("reset_wait", "call_wait"):
            self._patches.time(cls, attribute, "env_wait", outermost=True, wait=True)

    def _is_method(self, cls: type, attribute: str) -> bool:
        """Whether it is the class's own, and nothing special that a wrapper would break or time twice."""
        value = vars(cls).get(attribute)
        special = (staticmethod, classmethod, property, type, self._patches.profiler._module.Timed)
        return callable(value) and hasattr(type(value), "__get__") and not isinstance(value, special)


def _attach(gymnasium: ModuleType, patches: Patches) -> None:
    vector = gymnasium.vector
    environments = _Environments(patches, gymnasium)
    for base in (gymnasium.Env, vector.VectorEnv):
        environments.watch(base)
    environments.attach_waits(vector.AsyncVectorEnv)


PROBE = Probe("gymnasium", {"gymnasium": _attach}, since=(0, 29), before=(2,), generic=True)
