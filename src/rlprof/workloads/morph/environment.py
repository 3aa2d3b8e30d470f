"""The environments: hosts that are trained side by side, controlled by the actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlprof import profile, profile_function
from rlprof.workloads.morph.host import Host
from rlprof.workloads.morph.images import Batch, chance_of
from rlprof.workloads.morph.settings import BLOCKS, MorphSettings

LEARNING_RATE_FACTORS = (0.1, 1.0, 10.0, 30.0)
WEIGHT_DECAYS = (0.0, 1e-3, 1e-2)
KEEP, GROW, PRUNE = range(3)
HEADS = (len(LEARNING_RATE_FACTORS), len(WEIGHT_DECAYS), 3)
"""Number of choices per part of an action: learning rate, weight decay, and change of the network."""

OBSERVATION = 128
HISTORY = 8
"""Number of past epochs in an observation."""
MEASURED = ("loss", "accuracy", "validation_loss", "validation_accuracy")
"""First columns of the measurements of a host after an epoch. Statistics of the layers follow."""
VALIDATION_LOSS = MEASURED.index("validation_loss")
LIMIT = 10.0
"""Limit of every measurement, so that a host whose training has failed is not infinitely bad."""

Actions = NDArray[np.int64]
"""Hosts x heads."""


class Environments:
    """One environment per entry of `devices`, the device of its host. An episode is the training of one host, and all
    episodes end together."""

    def __init__(
        self, settings: MorphSettings, devices: Sequence[torch.device], feed: Iterator[list[Batch]], validation: Batch
    ) -> None:
        self.feed = feed
        self.hosts: list[Host] = []
        self.measured: NDArray[np.float32] = np.zeros((len(devices), 0), np.float32)
        """Measurements: hosts x columns."""
        self._settings = settings
        self._devices = devices
        self._validation = {device: (validation[0].to(device), validation[1].to(device)) for device in devices}
        self._history = np.zeros((len(devices), HISTORY, len(MEASURED)), np.float32)
        self._episode = self._epoch = 0

    @profile_function("env_reset")
    def reset(self) -> Tensor:
        """Replace all hosts by untrained ones. Returns their observations."""
        seeds = chance_of(self._settings.seed, 3, self._episode).integers(2**63, size=len(self._devices)).tolist()
        self.hosts = [Host(self._settings, device, seed) for device, seed in zip(self._devices, seeds)]
        self._episode += 1
        self._epoch = 0
        self._history[:] = 0
        self._measure([torch.zeros(2, device=device) for device in self._devices])
        return self._observe(None)

    @profile_function("env_step")
    def step(self, actions: Actions) -> tuple[Tensor, Tensor]:
        """Train every host for one epoch. Returns observations and rewards."""
        with profile("host_morph"):
            for host, action in zip(self.hosts, actions.tolist()):
                self._act(host, *action)
        before = self.measured[:, VALIDATION_LOSS]
        self._measure(self._train())
        self._epoch += 1
        rent = np.array([self._settings.host.rent * host.grown for host in self.hosts], np.float32)
        rewards = before - self.measured[:, VALIDATION_LOSS] - rent
        return self._observe(actions), torch.from_numpy(rewards)

    def _act(self, host: Host, learning_rate: int, weight_decay: int, morph: int) -> None:
        if morph == GROW:
            host.grow()
        elif morph == PRUNE:
            host.prune()
        rate = LEARNING_RATE_FACTORS[learning_rate] * self._settings.host.learning_rate
        for group in host.optimizer.param_groups:
            group.update(lr=rate, weight_decay=WEIGHT_DECAYS[weight_decay])

    def _train(self) -> list[Tensor]:
        """Train for an epoch. Returns mean loss and accuracy per host. Nothing waits for a device here, so that the
        devices work in parallel."""
        learned = []
        for _ in range(self._settings.host.batches):
            batches = next(self.feed)
            learned.append([host.learn(batch) for host, batch in zip(self.hosts, batches)])
        return [torch.stack(of_host).mean(0) for of_host in zip(*learned)]

    def _measure(self, learned: list[Tensor]) -> None:
        with profile("host_evaluation", device=True):
            judged = [host.judge(self._validation[host.device]) for host in self.hosts]
        with profile("host_statistics"):
            found = [
                torch.cat((mean, of_host, host.statistics()))
                for mean, of_host, host in zip(learned, judged, self.hosts)
            ]
            measured = torch.stack([of_host.cpu() for of_host in found]).numpy()
            self.measured = np.nan_to_num(measured, nan=LIMIT, posinf=LIMIT).clip(-LIMIT, LIMIT)

    def _observe(self, actions: Actions | None) -> Tensor:
        """Hosts x OBSERVATION: progress, the epochs so far (the last one first), statistics of the layers, the last
        action, grown branches, then zeros."""
        with profile("host_statistics"):
            self._history = np.roll(self._history, 1, axis=1)
            self._history[:, 0] = self.measured[:, : len(MEASURED)]
            hosts = len(self.hosts)
            parts = [
                np.full((hosts, 1), self._epoch / self._settings.episode_length),
                self._history.reshape(hosts, -1),
                self.measured[:, len(MEASURED) :],
                *(
                    np.zeros((hosts, choices)) if actions is None else np.eye(choices)[actions[:, head]]
                    for head, choices in enumerate(HEADS)
                ),
                np.array([[host.grown / BLOCKS] for host in self.hosts]),
            ]
            known = np.concatenate(parts, axis=1, dtype=np.float32)
            return torch.from_numpy(np.pad(known, ((0, 0), (0, OBSERVATION - known.shape[1]))))
