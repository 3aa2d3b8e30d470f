"""The reference trainings: small and honest equivalents of real ones, each with a bottleneck and its cure.

One folder each, which reads from settings to training. They use rlprof as any user would.
"""

from __future__ import annotations

from importlib import import_module

from rlprof.workloads.workload import Workload

WORKLOADS = {
    "petri": "Schedule a wafer cluster tool, a timed Petri net, with TorchRL's PPO.",
    "ricochet": "Ricochet Robots from RGB images, with a ConvLSTM on sb3-contrib's RecurrentPPO.",
    "distill": "From a scripted teacher to PPO: several agents in a grid world, a recurrent transformer policy.",
    "morph": "PPO that controls the training of small convolutional networks.",
    "battle": "Pokemon battles against a real game server, one thread an environment.",
}


def find_workload(name: str) -> Workload:
    """Imports no library of it yet."""
    workload: Workload = import_module(f"rlprof.workloads.{name}").WORKLOAD
    return workload
