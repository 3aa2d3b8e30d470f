"""The images, and three ways to load batches: a DataLoader, a DataLoader over images on the device, or a gather there.

All three yield the same batches in the same order, bit for bit, because the choice of images is made in one place.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from rlprof import profile
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


Batch = tuple[Tensor, Tensor]
Feed = Generator[list[Batch], None, None]
"""Yields a batch for each host, endlessly. Closing it ends its workers."""


def feed(settings: MorphSettings, images: Images, devices: Sequence[torch.device]) -> Feed:
    """Load batches as configured. `devices` has the device of each host."""
    if settings.experimental_gpu_preload_gather:
        return _gathered(settings, images, devices)
    if settings.gpu_preload:
        return _preloaded(settings, images, devices)
    return _loaded(settings, images, devices)


class Augmented(Dataset[tuple[Tensor, int]]):
    """Loads one image at a time, as most datasets do."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self.labels: list[int] = images.labels.tolist()

    def __getitem__(self, key: tuple[int, int, int, int, float, int, int]) -> tuple[Tensor, int]:
        index, top, left, mirrored, gain, hole_top, hole_left = key
        size = self.images.size
        image = self.images.pixels[index, :, top : top + size, left : left + size]
        if mirrored:
            image = image.flip(-1)
        image = normalize(image).mul_(gain)
        image[:, hole_top : hole_top + HOLE, hole_left : hole_left + HOLE] = 0
        return image, self.labels[index]


def _loader(images: Images, draws: Iterable[Draw], workers: int) -> DataLoader[tuple[Tensor, int]]:
    return DataLoader(
        Augmented(images),
        batch_sampler=(draw.keys() for draw in draws),
        num_workers=workers,
        generator=torch.Generator(),  # else a loader uses the global generator, which changes the actions
    )


def _loaded(settings: MorphSettings, images: Images, devices: Sequence[torch.device]) -> Feed:
    for pixels, labels in _loader(images, draw_batches(settings), settings.num_workers):
        with profile("to_device"):
            batches = list(zip(pixels.chunk(len(devices)), labels.chunk(len(devices))))
            moved = [(batch[0].to(device), batch[1].to(device)) for batch, device in zip(batches, devices)]
        yield moved


def _preloaded(settings: MorphSettings, images: Images, devices: Sequence[torch.device]) -> Feed:
    """One loader per device, in this process, because tensors on a device cannot be collated in another process."""
    loaders = []
    for device in dict.fromkeys(devices):
        hosts = [host for host, place in enumerate(devices) if place == device]
        draws = (draw.of(hosts) for draw in draw_batches(settings))
        loaders.append((hosts, device, iter(_loader(images.to(device), draws, workers=0))))
    while True:
        batches: list[Any] = [None] * len(devices)
        for hosts, device, loader in loaders:
            pixels, labels = next(loader)
            with profile("to_device"):
                split = zip(hosts, pixels.chunk(len(hosts)), labels.to(device).chunk(len(hosts)))
                for host, pixels_of_host, labels_of_host in split:
                    batches[host] = pixels_of_host, labels_of_host
        yield batches


def _gathered(settings: MorphSettings, images: Images, devices: Sequence[torch.device]) -> Feed:
    gathers = {device: Gather(images.to(device)) for device in devices}
    for draw in draw_batches(settings):
        with profile("data_loading"):
            batches = [gathers[device].batch(draw.of([host])) for host, device in enumerate(devices)]
        yield batches


class Gather:
    """Gathers batches by index: the place of each pixel of an augmented image in the tensor of all images."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self.stride = images.pixels[0].numel()
        self.places = _places(images)
        self.row = torch.arange(images.size, device=images.pixels.device)

    def batch(self, draw: Draw) -> Batch:
        (index, top, left, mirrored, gain, hole_top, hole_left) = (
            torch.from_numpy(part[0]).to(self.row.device, non_blocking=True) for part in draw
        )
        window = (top * SHIFTS + left) * 2 + mirrored
        pixels = self.images.pixels.take(index[:, None] * self.stride + self.places[window])
        images = normalize(pixels.view(-1, CHANNELS, self.images.size, self.images.size))
        images.mul_(gain[:, None, None, None])
        hole = self._hole(hole_top)[:, None, :, None] & self._hole(hole_left)[:, None, None, :]
        return images.masked_fill_(hole, 0), self.images.labels[index]

    def _hole(self, first: Tensor) -> Tensor:
        return (self.row >= first[:, None]) & (self.row < first[:, None] + HOLE)


def _places(images: Images) -> Tensor:
    """Places of the pixels in an image with its margin, for each shift down, shift right and mirroring."""
    size = images.size
    whole = torch.arange(images.pixels[0].numel(), device=images.pixels.device).view(images.pixels.shape[1:])
    windows = []
    for top in range(SHIFTS):
        for left in range(SHIFTS):
            window = whole[:, top : top + size, left : left + size]
            windows += [window.flatten(), window.flip(-1).flatten()]
    return torch.stack(windows)
