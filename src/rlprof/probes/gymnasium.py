"""gymnasium: steps, resets and rendering of every environment; steps and episodes are counted.

A method that a class inherits from elsewhere, from a simulator, is timed where it is an environment's, and nowhere
else.

Only the outermost is timed. An environment inside a vector, or inside a wrapper, is part of what steps it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from rlprof.probes.counting import let_others_count
from rlprof.probes.patches import Patches, below
from rlprof.probes.phases import phases_of
from rlprof.probes.probe import Probe


class _Environments:
    """Attaches to environment classes, existing and future ones."""

    def __init__(self, patches: Patches, gymnasium: ModuleType) -> None:
        self._patches = patches
        self._vector = gymnasium.vector.VectorEnv
        self._bases = (gymnasium.Env, gymnasium.vector.VectorEnv)
        self._handing_on = (gymnasium.Wrapper, getattr(gymnasium.vector, "VectorWrapper", None))
        """Classes that only pass calls on. Wrappers call them at every step, by super()."""
        phases = phases_of(patches)
        phases.sees_environments = True
        self._loop = phases.loop
        let_others_count(patches, self._loop)

    def watch(self, base: Any) -> None:
        """Attach to a base class and its subclasses, existing and future ones."""
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
                self._patches.profiler.warn(f"{cls.__name__} could not be attached to", error)

        self._patches.put(base, "__init_subclass__", classmethod(__init_subclass__))

    def attach(self, cls: type) -> None:
        if cls in self._handing_on:
            return
        step = "vector_step" if issubclass(cls, self._vector) else "step"
        for attribute, operation, kind in (("step", "env_step", step), ("reset", "env_reset", "reset")):
            owner = self._owner(cls, attribute)
            if owner is not None:
                inherited = None if owner is cls else _next_in_line(cls, attribute)
                self._patches.follow(cls, attribute, operation, self._loop, kind, inherited=inherited)
        owner = self._owner(cls, "render")
        if owner is not None:
            inherited = None if owner is cls else _next_in_line(cls, "render")
            self._patches.time(cls, "render", "env_render", outermost=True, inherited=inherited)

    def attach_waits(self, cls: type) -> None:
        """AsyncVectorEnv: what waits for its workers. Inside step, it has counted; others call step_async and step_wait
        themselves."""
        self._patches.follow(cls, "step_wait", "env_wait", self._loop, "step_wait", wait=True)
        for attribute in ("reset_wait", "call_wait"):
            self._patches.time(cls, attribute, "env_wait", outermost=True, wait=True)

    def _owner(self, cls: type, attribute: str) -> type | None:
        """The class that has the method, where it is this one or none that is attached to itself, such as the simulator
        in `class MyEnv(Simulator, gymnasium.Env)`. None also for what a wrapper would break or time twice."""
        owner = next((base for base in cls.__mro__ if attribute in vars(base)), None)
        if owner is None or (owner is not cls and issubclass(owner, self._bases)):
            return None
        value = vars(owner)[attribute]
        special = (staticmethod, classmethod, property, type, self._patches.profiler.timed_type)
        return owner if callable(value) and hasattr(type(value), "__get__") and not isinstance(value, special) else None


def _next_in_line(cls: type, attribute: str) -> Callable[..., Any]:
    """The inherited method, looked up at each call: a subclass may put another class before the simulator."""

    @wraps(getattr(cls, attribute))
    def inherited(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(super(cls, self), attribute)(*args, **kwargs)

    return inherited


def _attach(gymnasium: ModuleType, patches: Patches) -> None:
    vector = gymnasium.vector
    environments = _Environments(patches, gymnasium)
    for base in (gymnasium.Env, vector.VectorEnv):
        environments.watch(base)
    environments.attach_waits(vector.AsyncVectorEnv)


PROBE = Probe("gymnasium", {"gymnasium": _attach}, since=(0, 29), before=(2,), generic=True)
