"""The settings of morph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from rlprof.workloads.settings import Count, Number, Positive, Settings, Share, setting

BLOCKS = 3
"""Convolutions of a host. Each halves the image."""


@dataclass(frozen=True)
class HostSettings:
    channels: Count = 8
    """of the first block; each block has twice as many as the one before"""
    batch_size: Count = 128
    """images in a batch"""
    batches: Count = 2
    """in an epoch; there are as many training images as they hold"""
    learning_rate: Positive = 0.01
    """that the controller's factor is applied to"""
    momentum: Share = 0.9
    """of SGD"""
    rent: Share = 0.01
    """taken from the reward for each grown branch in each epoch"""


@dataclass(frozen=True)
class ImageSettings:
    size: Annotated[int, msgspec.Meta(ge=2**BLOCKS)] = 8
    """pixels in a row and in a column"""
    classes: Annotated[int, msgspec.Meta(ge=2)] = 10
    """patterns to be told apart"""
    noise: Positive = 0.3
    """standard deviation, where a pattern's is 0.25"""
    validation: Count = 64
    """images that the reward is measured on"""


@dataclass(frozen=True)
class ControllerSettings:
    hidden: Count = 512
    """units of the encoder and of the LSTM"""
    learning_rate: Positive = 3e-4
    """of Adam"""
    passes: Count = 4
    """over the epochs of a round, in an update"""
    gamma: Share = 0.995
    """discount of the reward"""
    gae_lambda: Share = 0.98
    """how far an advantage looks ahead"""
    clip: Positive = 0.2
    """how far a probability ratio may leave 1"""
    entropy: float = 0.05
    """weight of the entropy bonus"""
    max_gradient: Positive = 0.5
    """norm that gradients are clipped to"""


@dataclass(frozen=True)
class MorphSettings(Settings):
    iterations: Count = setting(20, "--rounds")
    """rounds: every host is trained for an episode, then the controller learns"""
    envs: Count = 4
    """hosts, trained side by side"""
    episode_length: Count = 8
    """epochs that a host is trained for"""
    devices: tuple[str, ...] = ()
    """where hosts are, in turn; on the controller's device unless told"""
    num_workers: Number = 0
    """processes that load batches; none where the images are on the device"""
    gpu_preload: bool = False
    """all images on the hosts' devices from the start; a DataLoader still collates them one by one"""
    experimental_gpu_preload_gather: bool = False
    """cut whole batches out of the preloaded images, without a DataLoader"""
    telemetry_dir: str | None = None
    """a folder whose events.jsonl gets what happens in the training, one JSON line each"""
    telemetry_level: Literal["off", "normal", "debug"] = "normal"
    """debug also tells every epoch of every host"""
    host: HostSettings = HostSettings()
    images: ImageSettings = ImageSettings()
    controller: ControllerSettings = ControllerSettings()

    @property
    def steps_per_iteration(self) -> int:
        return self.envs * self.episode_length
