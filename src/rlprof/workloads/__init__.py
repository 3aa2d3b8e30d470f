"""The reference trainings: small equivalents of real ones, each with a bottleneck and its cure.

Each has a folder. They use rlprof's public API, as any user would.
"""

from __future__ import annotations

from importlib import import_module

from rlprof.workloads.workload import Workload

WORKLOADS = {
    "petri": "Schedule a wafer cluster tool, a timed Petri net, with TorchRL's PPO.",
    "ricochet": "Ricochet Robots from RGB images, with a ConvLSTM on sb3-contrib's RecurrentPPO.",
    "distill": "From a scripted teacher to PPO: several agents in a grid world, a recurrent transformer policy.",
    "morph": "PPO that controls the training of small convolutional networks.",
    "battle": "Pokemon battles against a real game server, one thread per environment.",
}


def find_workload(name: str) -> Workload:
    """The workload of this name. Its libraries are not imported yet."""
    workload: Workload = import_module(f"rlprof.workloads.{name}").WORKLOAD
    return workload
