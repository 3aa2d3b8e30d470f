"""Copies between host and device, and waiting for it: from the moment CUDA is used, so that they cost nothing without.

A copy to the host waits for the device, and so does reading an item. Each tensor knows its device;
what stays on the host is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from rlprof.probes.patches import Patches

TO_HOST = ("cpu", "item", "tolist", "__bool__", "__float__", "__int__")


def attach_cuda(torch: ModuleType, patches: Patches) -> None:
    """Nothing asks here whether there is a device: that would open it, and a process that forks later must not have."""
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
                try:
                    attach_copies(torch, patches)
                except Exception as error:
                    patches.profiler.warn("copies between host and device are not timed", error)

        return _lazy_init

    patches.replace(cuda, "_lazy_init", watched)


def attach_copies(torch: ModuleType, patches: Patches) -> None:
    """The methods are those of a base class in C: `torch.Tensor` is given its own."""
    profile = patches.profiler.profile
    to_host, to_device = profile("device_to_host"), profile("host_to_device")
    tensor = torch.Tensor

    def leaving(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def leave(self: Any, *args: Any, **kwargs: Any) -> Any:
            if self.device.type == "cpu":
                return function(self, *args, **kwargs)
            with to_host:
                return function(self, *args, **kwargs)

        return leave

    def moving(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def move(self: Any, *args: Any, **kwargs: Any) -> Any:
            target = "cuda" if function.__name__ == "cuda" else _target(args, kwargs)
            if target in (self.device.type, ""):
                return function(self, *args, **kwargs)
            with to_host if target == "cpu" else to_device:
                return function(self, *args, **kwargs)

        return move

    for name in TO_HOST:
        patches.put(tensor, name, leaving(getattr(tensor, name)))
    for name in ("to", "cuda"):
        patches.put(tensor, name, moving(getattr(tensor, name)))
    patches.time(torch.cuda, "synchronize", "device_synchronize", outermost=True)


def _target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The kind of device that a call of `to` names; nothing where it names a data type only."""
    named = kwargs.get("device", args[0] if args else kwargs.get("other"))
    if isinstance(named, str):
        return named.partition(":")[0]
    if isinstance(named, int):
        return "cuda"
    device = getattr(named, "device", named)  # another tensor's
    return getattr(device, "type", "")
