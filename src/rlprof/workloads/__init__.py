"""The reference trainings: small equivalents of real ones, each with a bottleneck and its cure.

Each has a folder. They use rlprof's public API, as any user would.
"""

from __future__ import annotations

from importlib import import_module

from rlprof.workloads.workload import Workload

WORKLOADS = {
    "petri": "PPO on TorchRL that schedules a wafer cluster tool, a timed Petri net.",
    "ricochet": "RecurrentPPO of sb3-contrib with a ConvLSTM, on images of Ricochet Robots.",
    "distill": "Imitation of a scripted teacher, then PPO, with several agents in a grid world.",
    "morph": "PPO that controls the training of small convolutional networks.",
    "battle": "PPO in Pokemon battles on a real game server, one thread per environment.",
}


def find_workload(name: str) -> Workload:
    """The workload of this name. Its libraries are not imported yet."""
    workload: Workload = import_module(f"rlprof.workloads.{name}").WORKLOAD
    return workload
