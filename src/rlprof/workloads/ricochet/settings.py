"""The settings of ricochet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec

from rlprof.workloads.settings import Count, LearningSettings, Number, Positive, Settings, Several


@dataclass(frozen=True)
class BoardSettings:
    size: Several = 8
    """Cells per side."""
    robots: Count = 2
    """Robots on the board. The first one has to reach the target."""
    walls: Number = 16
    """Walls between cells, besides those around the board."""
    levels: Count = 4
    """Different boards, each with places for robots and target. Every episode plays one of them."""
    moves: Count = 2
    """Moves within which the target can be reached."""


@dataclass(frozen=True)
class ImageSettings:
    cell: Annotated[int, msgspec.Meta(ge=5)] = 11
    """Pixels per side of a drawn cell."""
    size: Annotated[int, msgspec.Meta(ge=16)] = 48
    """Pixels per side of the resized image."""


@dataclass(frozen=True)
class NetworkSettings:
    encoder_channels: tuple[Count, Count] = (8, 16)
    """Channels of the two convolutions that encode the observation."""
    strides: tuple[Count, Count] = (3, 2)
    """Strides of the two convolutions, on images."""
    channels: Count = 8
    """Channels of a ConvLSTM layer, at each cell of the board."""
    layers: Count = 2
    """Layers of the ConvLSTM, or of the LSTM."""
    hidden: Count = 256
    """Units between the ConvLSTM and its features."""
    features: Count = 128
    """Features of the recurrent network for the policy and the value, also the size of the LSTM."""
    heads: tuple[Count, ...] = (128, 128)
    """Units per layer of the policy, and the same for the separate value network."""


@dataclass(frozen=True)
class RicochetSettings(LearningSettings, Settings):
    obs_mode: Literal["rgb_image", "symbolic"] = "rgb_image"
    """Observe an image of the board, or one plane of zeros and ones per kind of object."""
    convlstm: bool = True
    """Use a ConvLSTM instead of an LSTM."""
    cached_rendering: bool = False
    """Draw the grid and the walls once per board, instead of once per observation."""
    iterations: Count = 60
    envs: Count = 32
    """Number of boards, played together."""
    n_steps: Count = 8
    """Steps per environment in each iteration."""
    batch_size: Several = 128
    """Steps per gradient step."""
    n_epochs: Count = 2
    """Passes over the collected steps."""
    learning_rate: Positive = 2e-3
    clip_range: Positive = 0.2
    """Largest change of a probability ratio from 1 before PPO clips it."""
    ent_coef: float = 0.01
    """Weight of the entropy bonus."""
    max_episode_steps: Count = 20
    """Most steps of an episode."""
    board: BoardSettings = field(default_factory=BoardSettings)
    image: ImageSettings = field(default_factory=ImageSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)

    @property
    def steps_per_iteration(self) -> int:
        return self.n_steps * self.envs
