"""gymnasium: times steps, resets and rendering of every environment, and counts steps and episodes.

Only outermost calls are timed: an environment inside a vector or a wrapper is part of it. If a class inherits a method
from elsewhere, such as a simulator, only calls on the environment are timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import ModuleType
from typing import Any

from rlprof.probes.patches import Patches, with_subclasses
from rlprof.probes.phases import phases_of
from rlprof.probes.probe import Probe


class _Environments:
    """Attaches to environment classes, existing and future ones."""

    def __init__(self, patches: Patches, gymnasium: ModuleType) -> None:
        self._patches = patches
        self._vector = gymnasium.vector.VectorEnv
        self._bases = (gymnasium.Env, gymnasium.vector.VectorEnv)
        self._handing_on = (gymnasium.Wrapper, getattr(gymnasium.vector, "VectorWrapper", None))
        """Classes that only pass calls on. Wrappers call them at every step by super()."""
        phases = phases_of(patches)
        phases.sees_environments = True
        self._loop = phases.loop
        for what in ("steps", "episodes"):
            make = partial(_counted_by_the_program, patches.profiler, self._loop, what)
            patches.replace(patches.profiler, f"add_{what}", make)

    def watch(self, base: Any) -> None:
        """Attach to a base class and its subclasses, existing and future ones."""
        for cls in with_subclasses(base):
            self.attach(cls)
        before = vars(base).get("__init_subclass__")

        def __init_subclass__(cls: Any, /, **kwargs: Any) -> None:  # noqa: N807 - its name
            if before is None:
                super(base, cls).__init_subclass__(**kwargs)
            else:
                before.__get__(None, cls)(**kwargs)
            self._patches.attempt(self.attach, cls, otherwise=f"cannot attach to {cls.__name__}")

        self._patches.put(base, "__init_subclass__", classmethod(__init_subclass__))

    def attach(self, cls: type) -> None:
        if cls in self._handing_on:
            return
        step = "vector_step" if issubclass(cls, self._vector) else "step"
        for attribute, operation, kind in (("step", "env_step", step), ("reset", "env_reset", "reset")):
            if owner := self._owner(cls, attribute):
                inherited = None if owner is cls else _inherited(cls, attribute)
                self._patches.follow(cls, attribute, operation, self._loop, kind, inherited=inherited)
        if owner := self._owner(cls, "render"):
            inherited = None if owner is cls else _inherited(cls, "render")
            self._patches.time(cls, "render", "env_render", outermost=True, inherited=inherited)

    def attach_waits(self, cls: type) -> None:
        """Methods of AsyncVectorEnv that wait for its workers. Some programs call step_async() and step_wait() instead
        of step()."""
        self._patches.follow(cls, "step_wait", "env_wait", self._loop, "step_wait", wait=True)
        for attribute in ("reset_wait", "call_wait"):
            self._patches.time(cls, attribute, "env_wait", outermost=True, wait=True)

    def _owner(self, cls: type, attribute: str) -> type | None:
        """The class that defines the method: this one, or one that is no environment, such as the simulator in `class
        MyEnv(Simulator, gymnasium.Env)`. None if the probe must not wrap the method, or times it elsewhere."""
        owner = next((base for base in cls.__mro__ if attribute in vars(base)), None)
        if owner is None or (owner is not cls and issubclass(owner, self._bases)):
            return None
        value = vars(owner)[attribute]
        special = (staticmethod, classmethod, property, type, self._patches.profiler.timed_type)
        return owner if callable(value) and hasattr(type(value), "__get__") and not isinstance(value, special) else None


def _counted_by_the_program(profiler: Any, loop: Any, what: str, add: Callable[[Any], None]) -> Callable[[Any], None]:
    """Replaces `add_steps` or `add_episodes`. When the program first calls it, the loop stops counting."""

    def first(number: Any) -> None:
        setattr(profiler, f"add_{what}", add)
        if getattr(loop, f"counts_{what}") and isinstance(number, int):
            number = max(0, number - getattr(loop, f"counted_{what}"))  # the loop has counted these already
        setattr(loop, f"counts_{what}", False)
        add(number)

    return first


def _inherited(cls: type, attribute: str) -> Callable[..., Any]:
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
