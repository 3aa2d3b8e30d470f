"""The settings of petri."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.workloads.settings import Count, Positive, Settings, Share, setting


@dataclass(frozen=True)
class PetriSettings(Settings):
    turbo: bool = True
    """nets of numbers instead of nets of objects; they do the same"""
    iterations: Count = setting(25, "--batches")
    """batches that are collected and learned from"""
    envs: Count = 16
    """cluster tools, stepped together"""
    frames_per_batch: Count = 640
    """environment steps in a batch"""
    minibatch: Count = 64
    """frames in a gradient step"""
    epochs: Count = 10
    """passes over a batch"""
    hidden: Count = 128
    """units in a layer of the policy (4 layers) and of the value network (3)"""
    learning_rate: Positive = 3e-4
    """of Adam"""
    gamma: Share = 0.99
    """discount of the reward"""
    gae_lambda: Share = 0.95
    """how far an advantage looks ahead"""
    clip: Positive = 0.2
    """how far a probability ratio may leave 1"""
    entropy: float = 0.01
    """weight of the entropy bonus"""
    horizon: Count = 600
    """steps after which an episode is cut off"""

    @property
    def steps_per_iteration(self) -> int:
        return -(-self.frames_per_batch // self.envs) * self.envs
