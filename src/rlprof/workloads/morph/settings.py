"""The settings of morph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from rlprof.workloads.settings import Count, Number, Positive, PPOSettings, Settings, Share, setting

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
    classes: Annotated[int, msgspec.Meta(ge=2)] = 10
    """Number of patterns to tell apart."""
    noise: Positive = 0.3
    """Standard deviation of the noise. That of a pattern is 0.25."""
    validation: Count = 64
    """Images that the reward is measured on."""


@dataclass(frozen=True)
class ControllerSettings(PPOSettings):
    hidden: Count = 512
    """Units of the encoder and of the LSTM."""
    passes: Count = 4
    """Passes of an update over the epochs of a round."""
    gamma: Share = 0.995
    gae_lambda: Share = 0.98
    entropy: float = 0.05
    max_gradient: Positive = 0.5
    """Norm to which gradients are clipped."""


@dataclass(frozen=True)
class MorphSettings(Settings):
    iterations: Count = setting(20, "--rounds")
    """Rounds. In each, every host is trained for an episode, then the controller learns."""
    envs: Count = 4
    """Hosts that are trained side by side."""
    episode_length: Count = 8
    """Epochs for which a host is trained."""
    devices: tuple[str, ...] = ()
    """Devices of the hosts, used in rotation (default: the controller's device)."""
    num_workers: Number = 0
    """Processes that load batches. Unused if the images are on the device."""
    gpu_preload: bool = False
    """Put all images on the hosts' devices at the start. A DataLoader still collates them one by one."""
    experimental_gpu_preload_gather: bool = False
    """Cut whole batches out of the preloaded images, without a DataLoader."""
    telemetry_dir: str | None = None
    """Folder whose events.jsonl gets one JSON line per event of the training."""
    telemetry_level: Literal["off", "normal", "debug"] = "normal"
    """Which events to write. debug adds every epoch of every host."""
    host: HostSettings = HostSettings()
    images: ImageSettings = ImageSettings()
    controller: ControllerSettings = ControllerSettings()

    @property
    def steps_per_iteration(self) -> int:
        return self.envs * self.episode_length
