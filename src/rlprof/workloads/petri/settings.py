"""The settings of petri."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.workloads.settings import Count, PPOSettings, Settings, setting


@dataclass(frozen=True)
class PetriSettings(PPOSettings, Settings):
    turbo: bool = True
    """Use nets of numbers instead of nets of objects. Both behave the same."""
    iterations: Count = setting(25, "--batches")
    """Batches to collect and learn from."""
    envs: Count = 16
    """Cluster tools that are stepped together."""
    frames_per_batch: Count = 640
    """Environment steps per batch."""
    minibatch: Count = 64
    """Frames per gradient step."""
    epochs: Count = 10
    """Passes over a batch."""
    hidden: Count = 128
    """Units per layer of the policy (4 layers) and of the value network (3 layers)."""
    horizon: Count = 600
    """Steps after which an episode is cut off."""

    @property
    def steps_per_iteration(self) -> int:
        return -(-self.frames_per_batch // self.envs) * self.envs
