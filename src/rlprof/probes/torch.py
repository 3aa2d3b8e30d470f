"""torch: the outermost call of a module, backward passes, optimizers, gradient clipping, data loading, checkpoints.

torch.compile, torch.jit and torch.fx must see what they would see without rlprof. So a module's class shows them its
own `__call__`, Dynamo skips the code of the probes, and no tensor is queried while it is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from rlprof.probes.compiling import attach_callbacks
from rlprof.probes.cuda import attach_cuda
from rlprof.probes.patches import Patches, with_subclasses
from rlprof.probes.phases import phases_of
from rlprof.probes.probe import Probe
from rlprof.probes.seen import seen_by

FORWARDS = (
    "loss_forward", "env_forward", "value_forward", "policy_predict", "action_selection", "action_sampling",
    "evaluate_actions", "lstm_forward", "loss", "host_forward", "host_evaluation", "compile",
)  # fmt: skip
"""A module that is called inside one of these operations is part of it."""

HOSTS = ("host_backward", "host_optimizer_step")
"""Operations of an environment that trains a network itself. The training does not learn there."""


def _attach_torch(torch: ModuleType, patches: Patches) -> None:
    loop = phases_of(patches).loop
    # While torch.jit.trace records, a query of a size would be recorded.
    loop.use_torch(torch.is_grad_enabled, torch._C._get_tracing_state, torch.Tensor, torch.is_anomaly_enabled)
    _attach_modules(torch.nn.Module, patches)
    for attribute in ("backward", "grad"):
        patches.follow(
            torch.autograd,
            attribute,
            "backward",
            loop,
            "backward",
            family=("policy_forward", *FORWARDS[:2], *HOSTS, "compile"),
        )
    _attach_optimizers(torch.optim.Optimizer, loop, patches)
    for attribute in ("clip_grad_norm_", "clip_grad_value_"):
        if patches.time(torch.nn.utils.clip_grad, attribute, "gradient_clip", outermost=True):
            patches.put(torch.nn.utils, attribute, vars(torch.nn.utils.clip_grad)[attribute])
    patches.time(torch, "save", "checkpoint", outermost=True)
    attach_cuda(torch, patches)


def _attach_modules(cls: type, patches: Patches) -> None:
    """Time the calls of modules. `cls` must define a `__call__` of its own."""
    loop = phases_of(patches).loop
    patches.follow(cls, "__call__", "policy_forward", loop, "forward", family=FORWARDS, hidden=True)


def _attach_optimizers(optimizer: Any, loop: Any, patches: Patches) -> None:
    """torch replaces the `step` of a class when its first optimizer is made. That replacement is timed."""

    seen = seen_by(patches)

    def attach(cls: type) -> None:
        owner = next((base for base in cls.__mro__ if "step" in vars(base)), optimizer)
        if owner is not optimizer:
            patches.follow(owner, "step", "optimizer_step", loop, "optimizer", family=HOSTS)
            loop.training = True

    def watched(original: Callable[[Any], None]) -> Callable[[Any], None]:
        @wraps(original)
        def _patch_step_function(self: Any) -> None:
            original(self)
            seen.saw_optimizer(self)
            patches.attempt(attach, type(self), otherwise=f"cannot attach to {type(self).__name__}")

        return _patch_step_function

    for cls in with_subclasses(optimizer):
        if getattr(cls.step, "hooked", False):
            attach(cls)
    patches.replace(optimizer, "_patch_step_function", watched)
    patches.follow(optimizer, "zero_grad", "zero_grad", loop, "zero_grad", family=HOSTS)


def _attach_loader(dataloader: ModuleType, patches: Patches) -> None:
    waits = patches.profiler.profile("data_loading", wait=True)

    def make(function: Callable[..., Any], span: Any) -> Callable[..., Any]:
        def __next__(iterator: Any) -> Any:  # noqa: N807 - its name
            with waits if getattr(iterator, "_num_workers", 0) else span:
                return function(iterator)

        return __next__

    patches.around(dataloader._BaseDataLoaderIter, "__next__", "data_loading", make)
    seen = seen_by(patches)

    def noticed(original: Callable[..., None]) -> Callable[..., None]:
        @wraps(original)
        def __init__(self: Any, loader: Any) -> None:  # noqa: N807 - its name
            original(self, loader)
            patches.attempt(seen.saw_iterator, loader, otherwise="the DataLoaders are not all counted")

        return __init__

    patches.replace(dataloader._BaseDataLoaderIter, "__init__", noticed)
    for attribute in ("__init__", "_shutdown_workers"):
        patches.time(dataloader._MultiProcessingDataLoaderIter, attribute, "loader_workers", outermost=True)


def _attach_fetchers(fetch: ModuleType, patches: Patches) -> None:
    """The work of a DataLoader's worker for each batch. Without workers, it is already inside the span above."""
    for fetcher in with_subclasses(fetch._BaseDatasetFetcher):
        patches.time(fetcher, "fetch", "data_loading", outermost=True)


def _attach_writer(writer: ModuleType, patches: Patches) -> None:
    for name in vars(writer.SummaryWriter):
        if name.startswith("add_") or name in ("flush", "close"):
            patches.time(writer.SummaryWriter, name, "logging", outermost=True)


def _attach_compiled(eval_frame: ModuleType, patches: Patches) -> None:
    _attach_modules(eval_frame.OptimizedModule, patches)


def _attach_dynamo(trace_rules: ModuleType, patches: Patches) -> None:
    """After a graph break, modules are called outside of any graph. Dynamo must not compile the probe's code."""
    before = list(trace_rules.SKIP_DIRS)
    trace_rules.add(__package__)

    def undo() -> None:
        trace_rules.SKIP_DIRS[:] = before
        trace_rules._recompile_re()

    patches.at_undo(undo)


def _attach_super(misc: ModuleType, patches: Patches) -> None:
    """If compiled code calls `super().method()`, Dynamo looks into the class itself. It must find the original of a
    method that rlprof has replaced."""
    timed = patches.profiler.timed_type

    def seeing_through(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def _resolved_getattr_and_source(self: Any, tx: Any, name: str) -> Any:
            found, source = original(self, tx, name)
            if not isinstance(found, timed):
                return found, source
            # The guards will find what the class shows: the function itself, or one that wraps it.
            shown = getattr(super(self.typevar.as_python_constant(), self.objvar.python_type()), name)
            if shown is found.__wrapped__ or not hasattr(shown, "__wrapped__"):
                return shown, source
            return shown.__wrapped__, source and type(source)(source, "__wrapped__")

        return _resolved_getattr_and_source

    patches.replace(misc.SuperVariable, "_resolved_getattr_and_source", seeing_through)


PROBE = Probe(
    "torch",
    {
        "torch": _attach_torch,
        "torch.utils.data.dataloader": _attach_loader,
        "torch.utils.data._utils.fetch": _attach_fetchers,
        "torch.utils.tensorboard.writer": _attach_writer,
        "torch._dynamo.eval_frame": _attach_compiled,
        "torch._dynamo.callback": attach_callbacks,
        "torch._dynamo.trace_rules": _attach_dynamo,
        "torch._dynamo.variables.misc": _attach_super,
    },
    since=(2, 0),
    before=(2, 14),
    generic=True,
)
