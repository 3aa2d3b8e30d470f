"""The settings of morph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from rlprof.workloads.settings import Count, Number, Positive, PPOSettings, Settings, Several, Share, setting

BLOCKS = 3
"""Convolutions per host. Each halves the image."""


@dataclass(frozen=True)
class HostSettings:
    channels: Count = 8
    """Channels of the first block. Each block has twice as many as the one before."""
    batch_size: Count = 128
    """Images per batch."""
    batches: Count = 2
    """Batches per epoch, which together hold all training images."""
    learning_rate: Positive = 0.01
    """Learning rate of SGD, which the controller scales."""
    momentum: Share = 0.9
    """Momentum of SGD."""
    rent: Share = 0.01
    """Penalty on the reward per grown branch and epoch."""


@dataclass(frozen=True)
class ImageSettings:
    size: Annotated[int, msgspec.Meta(ge=2**BLOCKS)] = 8
    """Width and height in pixels."""
    classes: Several = 10
    """Number of classes, each with a pattern of its own."""
    noise: Positive = 0.3
    """Standard deviation of the noise. That of a pattern is 0.25."""
    validation: Count = 64
    """Number of validation images, from which the reward is computed."""


@dataclass(frozen=True)
class ControllerSettings(PPOSettings):
    hidden: Count = 512
    """Units of the encoder and of the LSTM."""
    passes: Count = 4
    """Passes of an update over the episodes of an iteration."""
    gamma: Share = 0.995
    gae_lambda: Share = 0.98
    entropy: float = 0.05
    max_gradient: Positive = 0.5
    """Largest norm of the gradients."""


@dataclass(frozen=True)
class MorphSettings(Settings):
    iterations: Count = setting(20, "--rounds")
    """Number of iterations. Each trains every host for one episode, then updates the controller."""
    envs: Count = 4
    """Number of hosts, trained side by side."""
    episode_length: Count = 8
    """Epochs per episode, the training of one host."""
    devices: tuple[str, ...] = ()
    """Devices of the hosts, used in rotation (default: --device)."""
    num_workers: Number = 0
    """Number of processes that load batches. Ignored with --gpu-preload."""
    gpu_preload: bool = False
    """Copy all images to the hosts' devices at the start. A DataLoader still collates them one by one."""
    experimental_gpu_preload_gather: bool = False
    """Cut whole batches out of the preloaded images, without a DataLoader."""
    telemetry_dir: str | None = None
    """Folder for events.jsonl, with one JSON line per event of the training."""
    telemetry_level: Literal["off", "normal", "debug"] = "normal"
    """Events to write. The level debug adds every epoch of every host."""
    host: HostSettings = HostSettings()
    images: ImageSettings = ImageSettings()
    controller: ControllerSettings = ControllerSettings()

    @property
    def steps_per_iteration(self) -> int:
        return self.envs * self.episode_length
