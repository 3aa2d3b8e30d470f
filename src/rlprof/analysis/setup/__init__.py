"""What of a machine's set-up costs a training time, each with the evidence that was measured."""

from __future__ import annotations

from rlprof.analysis.setup.compute import cores, graphics, python, threads
from rlprof.analysis.setup.remark import BAD, Remark
from rlprof.analysis.setup.resources import disk, memory, processes
from rlprof.analysis.setup.timing import noise, recording
from rlprof.capture.machine.machine import Machine


def judge(machine: Machine) -> tuple[Remark, ...]:
    """What is set up badly, the bad things first. Without evidence there is no remark."""
    groups = (threads, cores, python, graphics, recording, noise, memory, disk, processes)
    remarks = [remark for group in groups for remark in group(machine)]
    return tuple(sorted(remarks, key=lambda remark: remark.severity != BAD))
