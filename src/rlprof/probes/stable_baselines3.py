"""stable-baselines3: rollouts, updates and their parts, in its classes and in classes derived from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from rlprof.probes import phases
from rlprof.probes.patches import Patches
from rlprof.probes.probe import Probe
from rlprof.probes.seen import seen_by

_COMMON = "stable_baselines3.common"


def _attach(_module: ModuleType, patches: Patches) -> None:
    # These modules need libraries that stable-baselines3 installs.
    from rlprof.probes._sb3_classes import Classes  # noqa: PLC0415
    from rlprof.probes._sb3_iterations import Iterations  # noqa: PLC0415

    algorithm = import_module(f"{_COMMON}.base_class").BaseAlgorithm
    callback = import_module(f"{_COMMON}.callbacks").BaseCallback
    model = import_module(f"{_COMMON}.policies").BaseModel
    iterations = Iterations(patches)
    classes = Classes(patches, {"collect_rollouts": iterations.collect, "get": iterations.read})
    patches.replace(algorithm, "_setup_learn", lambda original: _learning(original, classes, patches))
    # A training calls it after each step. An evaluation does not.
    patches.follow(algorithm, "_update_info_buffer", "episode_info", phases.phases_of(patches).loop, "dones")
    patches.replace(callback, "on_training_end", iterations.end)
    for owner in (algorithm, model):
        patches.replace(owner, "save", lambda original: _saving(original, classes, patches))
    _time_calls(patches)
    classes.time_all()
    time_evaluation(patches, f"{_COMMON}.evaluation", f"{_COMMON}.callbacks")
    for user in ("dqn.dqn", "sac.sac", "td3.td3"):
        time_target_update(patches, f"stable_baselines3.{user}")


def time_target_update(patches: Patches, user: str) -> None:
    """Time the update of target networks in a module that has imported the function for it."""
    patches.time(import_module(user), "polyak_update", "target_update", outermost=True)


def time_evaluation(patches: Patches, home: str, user: str) -> None:
    """Time evaluate_policy in the module that defines it, and in a module that has imported it."""
    original = import_module(home).evaluate_policy
    patches.time(import_module(home), "evaluate_policy", "evaluation", outermost=True)
    if import_module(user).evaluate_policy is original:
        patches.replace(import_module(user), "evaluate_policy", lambda _: vars(import_module(home))["evaluate_policy"])


def _time_calls(patches: Patches) -> None:
    """Time `critic(x)`, because torch's Module.__call__ cannot know the purpose of a module.

    A class still shows torch's own method: torch.compile and torch.fx must see what they would see without rlprof.
    """
    module = import_module("torch").nn.Module
    policies = import_module(f"{_COMMON}.policies")

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - its name
        return module.__call__(self, *args, **kwargs)

    for kind, operation in ((policies.BaseModel, "value_forward"), (policies.BasePolicy, "policy_forward")):
        timed = patches.profiler.timed_type(patches.profiler.profile(operation), __call__, module.__call__, True)
        patches.put(kind, "__call__", timed)


def _learning(original: Callable[..., Any], classes: Any, patches: Patches) -> Callable[..., Any]:
    """Each learn() begins with _setup_learn. By then all classes that will be used are defined."""

    def begin(model: Any) -> None:
        phases.off()  # the rules are for trainings with an unknown loop
        classes.time_all()
        seen_by(patches).saw_model(model)

    @wraps(original)
    def _setup_learn(*args: Any, **kwargs: Any) -> Any:
        patches.attempt(begin, args[0], otherwise="some classes derived from stable-baselines3's are not timed")
        return original(*args, **kwargs)

    return _setup_learn


def is_attached() -> bool:
    """True if stable-baselines3 is already timed. It must be imported."""
    replaced = import_module(f"{_COMMON}.base_class").BaseAlgorithm._setup_learn
    return getattr(replaced, "__globals__", None) is globals()


def _saving(original: Callable[..., Any], classes: Any, patches: Patches) -> Callable[..., Any]:
    checkpoint = patches.profiler.profile("checkpoint")

    @wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        with checkpoint, classes.as_they_were():
            return original(*args, **kwargs)

    return save


PROBE = Probe("stable-baselines3", attach={"stable_baselines3": _attach}, since=(2, 0), before=(3,))
