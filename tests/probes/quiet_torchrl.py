"""TorchRL imported without the warnings it has for itself, and trainings with it recorded. To be imported first."""

from __future__ import annotations

import warnings
from collections import Counter
from contextlib import contextmanager

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torchrl.collectors
    import torchrl.trainers  # noqa: F401

from rlprof import Profiler, RlprofWarning
from rlprof.probes import gymnasium as gymnasium_probe
from rlprof.probes import torch as torch_probe
from rlprof.probes import torchrl as torchrl_probe
from rlprof.probes.registry import Attached

PROBES = [gymnasium_probe.PROBE, torch_probe.PROBE, torchrl_probe.PROBE]


@contextmanager
def recorded(*probes, **options):
    profiler = Profiler(**options)
    attached = Attached(profiler)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RlprofWarning)
        attached.attach(probes or PROBES)
        profiler.enable()
        try:
            yield profiler
        finally:
            profiler.disable()
            attached.undo()


def paths(snapshot):
    """Calls, by the way down the call tree."""
    nodes = {node.id: node for node in snapshot.nodes}
    found = Counter()
    for node in nodes.values():
        names, at = [], node
        while at is not None and at.operation is not None:
            names.append(at.operation)
            at = nodes.get(at.parent)
        found["/".join(reversed(names))] += node.calls
    return found
