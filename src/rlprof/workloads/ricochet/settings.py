"""The settings of ricochet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec

from rlprof.workloads.settings import Count, Number, Positive, Settings, Share

Several = Annotated[int, msgspec.Meta(ge=2)]


@dataclass(frozen=True)
class BoardSettings:
    size: Several = 8
    """cells a side"""
    robots: Count = 2
    """on the board; the first has to reach the target"""
    walls: Number = 16
    """between two cells, beside those around the board"""
    levels: Count = 4
    """boards, each with places for robots and target; every episode is one of them"""
    moves: Count = 2
    """within which the target can be reached"""


@dataclass(frozen=True)
class ImageSettings:
    cell: Annotated[int, msgspec.Meta(ge=5)] = 11
    """pixels a side that a cell is drawn with"""
    size: Annotated[int, msgspec.Meta(ge=16)] = 48
    """pixels a side that the drawing is resized to"""


@dataclass(frozen=True)
class NetworkSettings:
    encoder_channels: tuple[Count, Count] = (8, 16)
    """of the two convolutions that look at the observation"""
    strides: tuple[Count, Count] = (3, 2)
    """of the two, on images"""
    channels: Count = 8
    """of a layer of the ConvLSTM, at each cell of the board"""
    layers: Count = 2
    """of the ConvLSTM, or of the LSTM"""
    hidden: Count = 256
    """units between the ConvLSTM and its features"""
    features: Count = 128
    """that the recurrent network has for the policy and for the value, also the size of the LSTM"""
    heads: tuple[Count, ...] = (128, 128)
    """units in the layers of the policy and, apart from it, of the value"""


@dataclass(frozen=True)
class RicochetSettings(Settings):
    obs_mode: Literal["rgb_image", "symbolic"] = "rgb_image"
    """what an agent sees: a picture of the board, or a plane of zeros and ones for each kind of thing on it"""
    convlstm: bool = True
    """remember with a ConvLSTM, instead of an LSTM"""
    cached_rendering: bool = False
    """draw a board's grid and walls once, instead of for every observation"""
    iterations: Count = 60
    """turns of collect-and-update"""
    envs: Count = 32
    """boards that are played on together"""
    n_steps: Count = 8
    """steps of each environment in an iteration"""
    batch_size: Several = 128
    """steps in a gradient step"""
    n_epochs: Count = 2
    """passes over what was collected"""
    learning_rate: Positive = 2e-3
    """of Adam"""
    gamma: Share = 0.99
    """discount of the reward"""
    gae_lambda: Share = 0.95
    """how far an advantage looks ahead"""
    clip_range: Positive = 0.2
    """how far a probability ratio may leave 1"""
    ent_coef: float = 0.01
    """weight of the entropy bonus"""
    max_episode_steps: Count = 20
    """after which an episode is cut off"""
    board: BoardSettings = field(default_factory=BoardSettings)
    image: ImageSettings = field(default_factory=ImageSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)

    @property
    def steps_per_iteration(self) -> int:
        return self.n_steps * self.envs
