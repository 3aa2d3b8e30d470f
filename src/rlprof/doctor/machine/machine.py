"""Measures this machine as a training sees it: its size, its speed, and how steady it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter_ns

from rlprof.doctor.machine import speed
from rlprof.doctor.machine.cgroup import read_limits
from rlprof.doctor.machine.cores_and_memory import Cores, Disk, Memory, look_at_cores, look_at_disk, look_at_memory
from rlprof.doctor.machine.software import Software, look_at_software
from rlprof.doctor.machine.torch import Compute, measure_numpy, measure_torch

_ROUNDS = 100
"""speed.Rounds of the fixed work, at the start and again at the end."""


@dataclass(frozen=True, slots=True)
class Machine:
    """All measurements. None always means not measured."""

    cores: Cores
    memory: Memory
    disk: Disk
    software: Software
    clock: speed.Clock
    steadiness: speed.Steadiness
    copy_bytes_per_s: float | None = None
    """Copy from memory to memory, on one thread."""
    processes: speed.Processes | None = None
    compute: Compute | None = None
    compute_error: str | None = None
    """Why an installed torch or numpy could not be measured."""
    quick: bool = False
    took_ns: int = 0


def measure_machine(quick: bool = False, report: Callable[[str], None] = lambda _: None) -> Machine:
    """Measure everything, in a few seconds. `quick` skips torch and starting processes.

    `report` is called with what is measured next. Nothing runs beside the measurements.
    """
    began = perf_counter_ns()
    report("what other programs do")  # first, because later it would include rlprof's own work
    limits = read_limits()
    cores = look_at_cores(limits)
    memory = look_at_memory(limits)
    report("how steady the machine is")
    rounds = speed.Rounds()
    rounds.run(_ROUNDS)
    report("what a span costs")
    clock = speed.measure_clock()
    report("memory and disk")
    copy = speed.measure_copy()
    disk = look_at_disk()
    software = look_at_software()
    processes, compute, error = None, None, None
    if not quick:
        report("starting processes")
        processes = speed.measure_processes()
        report("torch with one thread and with all" if find_spec("torch") else "matrices")
        compute, error = _compute(max(1, math.ceil(cores.usable)))
    report("how steady the machine is, once more")
    rounds.run(_ROUNDS)
    return Machine(
        cores=cores,
        memory=memory,
        disk=disk,
        software=software,
        clock=clock,
        steadiness=rounds.steadiness(),
        copy_bytes_per_s=copy,
        processes=processes,
        compute=compute,
        compute_error=error,
        quick=quick,
        took_ns=perf_counter_ns() - began,
    )


def _compute(cores: int) -> tuple[Compute | None, str | None]:
    """With torch, else with numpy. A broken installation can raise anything when it is imported."""
    error = None
    if find_spec("torch") is not None:
        try:
            return measure_torch(cores), None
        except Exception as raised:
            error = f"torch: {type(raised).__name__}: {raised}"
    if find_spec("numpy") is not None:
        try:
            return measure_numpy(), error
        except Exception as raised:
            error = error or f"numpy: {type(raised).__name__}: {raised}"
    return None, error
