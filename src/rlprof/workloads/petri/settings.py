"""The settings of petri."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.workloads.settings import Count, PPOSettings, Settings, setting


@dataclass(frozen=True)
class PetriSettings(PPOSettings, Settings):
    turbo: bool = True
    """Compute the nets with numbers instead of objects. Both behave the same."""
    iterations: Count = setting(25, "--batches")
    """Number of iterations. Each collects one batch and learns from it."""
    envs: Count = 16
    """Number of cluster tools, stepped together."""
    frames_per_batch: Count = 640
    """Environment steps per batch."""
    minibatch: Count = 64
    """Environment steps per gradient step."""
    epochs: Count = 10
    """Passes over each batch."""
    hidden: Count = 128
    """Units per layer of the policy and of the value network."""
    horizon: Count = 600
    """Most steps of an episode."""

    @property
    def steps_per_iteration(self) -> int:
        return -(-self.frames_per_batch // self.envs) * self.envs
