"""Copies between host and device, and waits for the device. They are timed from the moment CUDA is first used.

Copying to the host and reading an item wait for the device. Tensors that stay on the host are not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from rlprof.probes.patches import Patches

TO_HOST = ("cpu", "item", "tolist", "__bool__", "__float__", "__int__")


def attach_cuda(torch: ModuleType, patches: Patches) -> None:
    """Does not check whether there is a device: that would open it, and a process that forks later must not open it."""
    cuda = torch.cuda
    if torch.version.cuda is None and torch.version.hip is None:
        return
    if cuda.is_initialized():
        attach_copies(torch, patches)
        return

    def watched(original: Callable[[], None]) -> Callable[[], None]:
        @wraps(original)
        def _lazy_init() -> None:
            original()
            if cuda._lazy_init is _lazy_init:
                cuda._lazy_init = original
                patches.attempt(attach_copies, torch, patches, otherwise="copies between host and device are not timed")

        return _lazy_init

    patches.replace(cuda, "_lazy_init", watched)


def attach_copies(torch: ModuleType, patches: Patches) -> None:
    """`torch.Tensor` inherits these methods from a class in C. It gets its own."""
    profile = patches.profiler.profile
    to_host, to_device = profile("device_to_host"), profile("host_to_device")
    tensor = torch.Tensor

    def timed(function: Callable[..., Any], target_of: Callable[..., str]) -> Callable[..., Any]:
        @wraps(function)
        def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
            target = target_of(args, kwargs)
            if target in (self.device.type, ""):
                return function(self, *args, **kwargs)
            with to_host if target == "cpu" else to_device:
                return function(self, *args, **kwargs)

        return copy

    targets = {name: lambda *_: "cpu" for name in TO_HOST} | {"to": _target, "cuda": lambda *_: "cuda"}
    for name, target_of in targets.items():
        patches.put(tensor, name, timed(getattr(tensor, name), target_of))
    patches.time(torch.cuda, "synchronize", "device_synchronize", outermost=True)


def _target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The kind of device that a call of `to` names; empty if it only names a data type."""
    named = kwargs.get("device", args[0] if args else kwargs.get("other"))
    if isinstance(named, str):
        return named.partition(":")[0]
    if isinstance(named, int):
        return "cuda"
    device = getattr(named, "device", named)  # another tensor's
    return getattr(device, "type", "")
