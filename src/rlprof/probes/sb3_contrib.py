"""sb3-contrib: operations of its own. The probe of stable-baselines3 times the methods that it overrides."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from rlprof.ledger.profiler import Profiler
from rlprof.probes.patches import Patches
from rlprof.probes.probe import Probe
from rlprof.probes.stable_baselines3 import time_evaluation, time_target_update

_MASKABLE = "sb3_contrib.common.maskable"


def _attach(_module: ModuleType, patches: Patches) -> None:
    for user in (f"{_MASKABLE}.utils", f"{_MASKABLE}.evaluation", "sb3_contrib.ppo_mask.ppo_mask"):
        patches.time(import_module(user), "get_action_masks", "action_masks", outermost=True, category="environment")
    time_evaluation(patches, f"{_MASKABLE}.evaluation", f"{_MASKABLE}.callbacks")
    for user in ("qrdqn.qrdqn", "tqc.tqc"):
        time_target_update(patches, f"sb3_contrib.{user}")
    recurrent = import_module("sb3_contrib.common.recurrent.policies").RecurrentActorCriticPolicy
    patches.time(recurrent, "_process_sequence", "lstm_forward", outermost=True)
    ars = import_module("sb3_contrib.ars.ars")
    # ARS evaluates policies where other algorithms roll out.
    patches.replace(ars, "evaluate_policy", lambda function: getattr(function, "__wrapped__", function))
    patches.replace(ars.ARS, "_do_one_update", lambda original: _iterating(original, patches.profiler))
    patches.replace(ars.ARS, "_mimic_monitor_wrapper", lambda original: _counting(original, patches.profiler))


def _iterating(original: Callable[..., Any], profiler: Profiler) -> Callable[..., Any]:
    """One iteration of ARS: rollouts of all candidates, and then some arithmetic."""
    rollout = profiler.profile("rollout")
    update = profiler.profile("update")

    @wraps(original)
    def _do_one_update(*args: Any, **kwargs: Any) -> Any:
        profiler.iteration()
        with rollout:
            result = original(*args, **kwargs)
            profiler.ledger.split(rollout, update)
        return result

    return _do_one_update


def _counting(original: Callable[..., Any], profiler: Profiler) -> Callable[..., Any]:
    @wraps(original)
    def _mimic_monitor_wrapper(model: Any, episode_rewards: Any, episode_lengths: Any) -> Any:
        profiler.add_steps(int(sum(episode_lengths)))
        profiler.add_episodes(len(episode_lengths))
        return original(model, episode_rewards, episode_lengths)

    return _mimic_monitor_wrapper


PROBE = Probe("sb3-contrib", attach={"sb3_contrib": _attach}, since=(2, 0), before=(3,))
