"""Three ways to load batches: a DataLoader, a DataLoader over images on the device, or a gather on the device.

All three yield the same batches in the same order, bit for bit.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from rlprof import profile
from rlprof.workloads.morph.images import CHANNELS, HOLE, SHIFTS, Draw, Images, draw_batches, normalize
from rlprof.workloads.morph.settings import MorphSettings

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
