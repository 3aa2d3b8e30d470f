"""Torch, set up for a training."""

from __future__ import annotations

import torch

from rlprof.errors import RlprofError
from rlprof.workloads.settings import Settings


def prepare_torch(settings: Settings) -> torch.device:
    """Set the threads and the seed, and return the device of the networks."""
    torch.set_num_threads(settings.torch_threads)
    torch.manual_seed(settings.seed)
    return find_device(settings.device)


def find_device(name: str) -> torch.device:
    """The device of this name. Raises RlprofError if torch cannot compute on it here."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RlprofError(f"torch has no device {name!r} on this machine; cpu always works") from error
    return device
