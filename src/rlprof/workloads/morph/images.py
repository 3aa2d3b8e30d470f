"""The images, and the random choice of images for each batch, which is the same however the batch is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rlprof.workloads.morph.settings import ImageSettings, MorphSettings

CHANNELS = 3
MARGIN = 2
"""Maximum shift of an image in pixels, to each side."""
SHIFTS = 2 * MARGIN + 1
GAINS = (0.8, 1.25)
"""Range of the factor for an image's contrast."""
HOLE = 3
"""Side of the square that is cut out of an image."""
SPREAD = 0.25
"""Standard deviation of a pattern, of a brightness from 0 to 1 around 0.5."""


@dataclass(frozen=True)
class Images:
    pixels: Tensor
    """uint8: images x channels x rows x columns, with a margin around."""
    labels: Tensor

    def to(self, device: torch.device) -> Images:
        return Images(self.pixels.to(device), self.labels.to(device))

    @property
    def size(self) -> int:
        return self.pixels.shape[-1] - 2 * MARGIN


def chance_of(seed: int, *purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed % 2**64, *purpose])


def make_images(settings: ImageSettings, number: int, seed: int, split: int) -> Images:
    """Images, each the pattern of its class with noise. Patterns depend on the seed, images also on the split."""
    patterns = _patterns(settings, chance_of(seed, 0))
    chance = chance_of(seed, 1, split)
    labels = chance.permutation(np.arange(number) % settings.classes)
    noise = chance.normal(0, settings.noise, (number, *patterns.shape[1:]))
    pixels = np.clip(255 * (0.5 + patterns[labels] + noise), 0, 255).astype(np.uint8)
    margins = ((0, 0), (0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN))
    return Images(torch.from_numpy(np.pad(pixels, margins, mode="reflect")), torch.from_numpy(labels))


def _patterns(settings: ImageSettings, chance: np.random.Generator) -> NDArray[np.float64]:
    """One pattern per class: coarse, blurred blotches of colour."""
    blotches = torch.from_numpy(chance.normal(0, 1, (settings.classes, CHANNELS, 4, 4)))
    patterns = functional.interpolate(blotches, (settings.size, settings.size), mode="bilinear").numpy()
    spread: NDArray[np.float64] = patterns / patterns.std((1, 2, 3), keepdims=True) * SPREAD
    return spread


class Draw(NamedTuple):
    """The images of a batch for every host, and their augmentation: arrays of hosts x images."""

    image: NDArray[Any]
    top: NDArray[Any]
    left: NDArray[Any]
    mirrored: NDArray[Any]
    gain: NDArray[Any]
    hole_top: NDArray[Any]
    hole_left: NDArray[Any]

    def of(self, hosts: list[int]) -> Draw:
        return Draw(*(part[hosts] for part in self))

    def keys(self) -> list[tuple[Any, ...]]:
        """Iterate over the images, host after host."""
        return list(zip(*(part.ravel().tolist() for part in self)))


def draw_batches(settings: MorphSettings) -> Iterator[Draw]:
    """Draw batches endlessly. In each epoch every host sees every image once, in its own order."""
    chance = chance_of(settings.seed, 2)
    shape = hosts, batch = settings.envs, settings.host.batch_size
    whole = np.tile(np.arange(settings.host.batches * batch), (hosts, 1))
    while True:
        order = chance.permuted(whole, axis=1)
        for start in range(0, order.shape[1], batch):
            top, left = chance.integers(0, SHIFTS, (2, *shape))
            mirrored = chance.integers(0, 2, shape)
            gain = chance.uniform(*GAINS, shape).astype(np.float32)
            hole_top, hole_left = chance.integers(0, settings.images.size - HOLE + 1, (2, *shape))
            yield Draw(order[:, start : start + batch], top, left, mirrored, gain, hole_top, hole_left)


def normalize(pixels: Tensor) -> Tensor:
    return pixels.float().div_(255).sub_(0.5).div_(SPREAD)


def middle(images: Images) -> Tensor:
    """Every image without its margin, not augmented."""
    inside = slice(MARGIN, MARGIN + images.size)
    return normalize(images.pixels[:, :, inside, inside])
