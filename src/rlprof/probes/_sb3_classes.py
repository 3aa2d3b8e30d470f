"""The operations of stable-baselines3 by class and method, timed in every subclass.

sb3-contrib and users' own classes are subclasses like any other, so no algorithm is named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType
from typing import Any

from rlprof.probes.patches import Patches, with_subclasses
from rlprof.probes.phases import phases_of

_COMMON = "stable_baselines3.common"

_Methods = dict[str, str]

# If two kinds fit a class, the first one decides: a model that is not a policy is a critic.
KINDS: tuple[tuple[str, str, _Methods], ...] = (
    (
        f"{_COMMON}.base_class",
        "BaseAlgorithm",
        {
            "collect_rollouts": "rollout",
            "train": "update",
            "_sample_action": "action_selection",
            "_store_transition": "replay_add",
            "dump_logs": "logging",
            "_dump_logs": "logging",  # its name in older versions
            "save_replay_buffer": "checkpoint",
        },
    ),
    (
        f"{_COMMON}.policies",
        "BasePolicy",
        {
            **dict.fromkeys(("forward", "_predict", "get_distribution", "action_log_prob"), "policy_forward"),
            "predict_values": "value_forward",
            "evaluate_actions": "evaluate_actions",
        },
    ),
    (f"{_COMMON}.policies", "BaseModel", {"forward": "value_forward", "q1_forward": "value_forward"}),
    (f"{_COMMON}.distributions", "Distribution", {"get_actions": "action_sampling"}),
    (
        f"{_COMMON}.buffers",
        "RolloutBuffer",
        {
            "add": "buffer_add",
            "get": "buffer_get",
            "reset": "buffer_reset",
            "compute_returns_and_advantage": "advantage",
        },
    ),
    (f"{_COMMON}.buffers", "ReplayBuffer", {"add": "replay_add", "sample": "replay_sample"}),
    (f"{_COMMON}.vec_env", "VecEnv", {"step": "env_step", "step_wait": "env_step", "reset": "env_reset"}),
    (f"{_COMMON}.vec_env", "VecNormalize", {"save": "checkpoint"}),
    (
        f"{_COMMON}.callbacks",
        "BaseCallback",
        dict.fromkeys(("on_training_start", "on_rollout_start", "on_step", "on_rollout_end"), "callback"),
    ),
    (f"{_COMMON}.logger", "Logger", {"dump": "logging"}),
)

# The driver waits for its workers in these methods.
_WAITS = ("step_wait", "reset", "env_method", "get_attr")


class Classes:
    """The classes whose methods are timed. Looking for new ones costs next to nothing if there are none."""

    def __init__(self, patches: Patches, special: dict[str, Callable[[Any], Any]]) -> None:
        """special: by name of a method, the function that makes its replacement."""
        self._patches = patches
        self._special = special
        self._roots = [(getattr(import_module(module), name), methods) for module, name, methods in KINDS]
        self._seen: set[type] = set()
        self._loop = phases_of(patches).loop
        self._unimportable: list[tuple[type, str, Any, Any]] = []
        waiting = import_module(f"{_COMMON}.vec_env").SubprocVecEnv
        for attribute in _WAITS:
            patches.time(waiting, attribute, "env_wait", wait=True, outermost=True)

    def time_all(self) -> None:
        """Time the classes that are defined by now."""
        found: dict[type, _Methods] = {}
        for root, methods in self._roots:
            for owner in with_subclasses(root):
                if owner not in self._seen:
                    found[owner] = methods | found.get(owner, {})
        for owner, methods in found.items():
            self._seen.add(owner)
            for attribute, operation in methods.items():
                self._time(owner, attribute, operation)

    def _time(self, owner: type, attribute: str, operation: str) -> None:
        original = vars(owner).get(attribute)
        if not isinstance(original, FunctionType) or getattr(original, "__isabstractmethod__", False):
            return  # inherited, timed already, or no plain method
        if attribute in self._special:
            self._patches.replace(owner, attribute, self._special[attribute])
        elif operation == "env_step":
            self._patches.follow(owner, attribute, operation, self._loop, "level")
        else:
            self._patches.time(owner, attribute, operation, outermost=True)
        if owner.__module__ == "__main__" or "<locals>" in owner.__qualname__:
            self._unimportable.append((owner, attribute, original, vars(owner)[attribute]))

    @contextmanager
    def as_they_were(self) -> Iterator[None]:
        """Restore the methods while a file is saved. cloudpickle saves classes that cannot be imported as a whole, and
        a model that is saved under rlprof must load without rlprof."""
        timed = [entry for entry in self._unimportable if vars(entry[0]).get(entry[1]) is entry[3]]
        for owner, attribute, original, _ in timed:
            setattr(owner, attribute, original)
        try:
            yield
        finally:
            for owner, attribute, _, method in timed:
                setattr(owner, attribute, method)
