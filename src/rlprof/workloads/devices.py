"""Where networks are."""

from __future__ import annotations

import torch

from rlprof.errors import RlprofError


def find_device(name: str) -> torch.device:
    """Raises where torch cannot compute on it here."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RlprofError(f"torch finds no device {name!r} here; cpu is always there") from error
    return device
