"""TorchRL: collectors, environments, losses, buffers, loggers and trainers. torch's probe times backward passes and
optimizers."""

from __future__ import annotations

from functools import wraps
from threading import get_ident
from types import ModuleType
from typing import Any

from rlprof.probes._torchrl_classes import time_calls, time_family
from rlprof.probes._torchrl_iterations import iterations_of
from rlprof.probes.patches import Patches
from rlprof.probes.phases import phases_of
from rlprof.probes.probe import Probe
from rlprof.probes.seen import seen_by

_ENV = {"step": "env_step", "step_and_maybe_reset": "env_step", "reset": "env_reset"}

_BUFFER = {
    "add": "replay_add",
    "extend": "replay_add",
    "sample": "replay_sample",
    "update_priority": "replay_priority",
    "update_tensordict_priority": "replay_priority",
}

_COLLECTOR = {"update_policy_weights_": "weight_sync", "receive_weights": "weight_sync"}

_ESTIMATOR = {"_call_value_nets": "value_forward", "_next_value": "value_forward"}


_COPIES = ("clone", "contiguous", "detach", "from_any", "memmap", "memmap_", "share_memory_", "to_tensordict")
_ENTRIES = ("exclude", "flatten_keys", "select", "unflatten_keys", "update", "update_")
_SHAPES = ("chunk", "expand", "flatten", "reshape", "squeeze", "transpose", "unflatten", "unsqueeze", "view")
_PARTS = ("gather", "masked_select", "split", "unbind", "where")
_STACKS = ("__torch_function__", "lazy_stack", "maybe_dense_stack")
_LEAVES = ("_fast_apply", "apply", "consolidate", "to_module")
_TENSORDICT = (*_COPIES, *_ENTRIES, *_SHAPES, *_PARTS, *_STACKS, *_LEAVES)
"""Operations on whole tensordicts. `get`, `set` and indexing are not timed: they are many and short, and torch.compile
has rules of its own for indexing. `to`, `cpu` and `permute` break torch.compile's graphs, and would break them in
another place if they were timed. Their work is in `_fast_apply`."""


def _loss(method: str) -> str | None:
    """Methods that trainings call if actor and critic alternate: `actor_loss`, `qvalue_loss`, ..."""
    return "loss" if method.endswith("_loss") and method[0] != "_" else None


def _log(method: str) -> str | None:
    return "logging" if method.startswith("log_") else None


def _attach_tensordict(module: ModuleType, patches: Patches) -> None:
    for kind in (module.TensorDictBase, module.TensorDict, module.LazyStackedTensorDict):
        for name in _TENSORDICT:
            patches.time(kind, name, "tensordict_ops", outermost=True)


def _attach_envs(module: ModuleType, patches: Patches) -> None:
    time_family(patches, module.EnvBase, _ENV.get)
    patches.replace(module.EnvBase, "rollout", iterations_of(patches).evaluated)
    patches.time(module.ParallelEnv, "_wait_for_workers", "env_wait", wait=True)
    patches.time(module.ParallelEnv, "_start_workers", "env_make")


def _attach_data(module: ModuleType, patches: Patches) -> None:
    time_family(patches, module.ReplayBuffer, _BUFFER.get, seen_by(patches).saw_buffer)


def _attach_objectives(module: ModuleType, patches: Patches) -> None:
    time_calls(patches, module.LossModule, "loss", phases_of(patches).loop)
    time_calls(patches, module.value.ValueEstimatorBase, "advantage")
    time_family(patches, module.LossModule, _loss)
    time_family(patches, module.value.ValueEstimatorBase, _ESTIMATOR.get)
    time_family(patches, module.utils.TargetNetUpdater, {"step": "target_update"}.get)


def _attach_collectors(module: ModuleType, patches: Patches) -> None:
    iterations = iterations_of(patches)
    patches.replace(module.BaseCollector, "__iter__", iterations.iterated)
    for name in ("Collector", "MultiCollector", "MultiSyncCollector", "MultiAsyncCollector", "AsyncBatchedCollector"):
        if hasattr(module, name):
            patches.replace(getattr(module, name), "shutdown", iterations.shut_down)
    time_family(patches, module.BaseCollector, _COLLECTOR.get)
    patches.time(module.MultiCollector, "_run_processes", "env_make")
    _time_policy(module.Collector, patches)


def _time_policy(collector: Any, patches: Patches) -> None:
    """The policy may be any callable. A thread inside `rollout` gets a timed policy from the collector."""
    policy_of = vars(collector).get("_wrapped_policy")
    if not isinstance(policy_of, property) or policy_of.fget is None:
        return  # an older version; torch's probe times policies that are modules
    original_get, set = policy_of.fget, policy_of.fset
    time_function = patches.profiler.time_function
    timed_on: dict[int, Any] = {}

    def get(self: Any) -> Any:
        policy = original_get(self)
        timed = timed_on.get(get_ident())
        return timed if timed is not None and timed.__wrapped__ is policy else policy

    def rolled_out(original: Any) -> Any:
        @wraps(original)
        def rollout(self: Any, *args: Any, **kwargs: Any) -> Any:
            thread = get_ident()
            timed_on[thread] = time_function(original_get(self), "policy_forward", outermost=True)
            try:
                return original(self, *args, **kwargs)
            finally:
                timed_on.pop(thread, None)

        return rollout

    patches.replace(collector, "_wrapped_policy", lambda original: property(get, set, None, original.__doc__))
    patches.replace(collector, "rollout", rolled_out)


def _attach_record(module: ModuleType, patches: Patches) -> None:
    time_family(patches, module.loggers.Logger, _log)


def _attach_trainers(module: ModuleType, patches: Patches) -> None:
    patches.replace(module.Trainer, "optim_steps", iterations_of(patches).optimized)
    patches.time(module.Trainer, "_log", "logging", outermost=True)
    patches.time(module.Trainer, "save_trainer", "checkpoint", outermost=True)
    patches.time(module.LogValidationReward, "__call__", "evaluation", outermost=True)


PROBE = Probe(
    library="torchrl",
    attach={
        "tensordict": _attach_tensordict,
        "torchrl.envs": _attach_envs,
        "torchrl.data": _attach_data,
        "torchrl.objectives": _attach_objectives,
        "torchrl.collectors": _attach_collectors,
        "torchrl.record": _attach_record,
        "torchrl.trainers": _attach_trainers,
    },
    since=(0, 14),
    before=(0, 15),
)
"""Tested with 0.14.1 and tensordict 0.14.3. The classes of older versions have other names."""
