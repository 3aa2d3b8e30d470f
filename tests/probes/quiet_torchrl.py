"""TorchRL imported without the warnings it has for itself, and trainings with it recorded. To be imported first."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torchrl.collectors
    import torchrl.trainers  # noqa: F401

import generic_probes

from rlprof import RlprofWarning
from rlprof.probes import gymnasium as gymnasium_probe
from rlprof.probes import torch as torch_probe
from rlprof.probes import torchrl as torchrl_probe

PROBES = [gymnasium_probe.PROBE, torch_probe.PROBE, torchrl_probe.PROBE]


@contextmanager
def recorded(*probes, **options):
    """Warnings of rlprof are errors inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RlprofWarning)
        with generic_probes.recorded(*(probes or PROBES), **options) as profiler:
            yield profiler
