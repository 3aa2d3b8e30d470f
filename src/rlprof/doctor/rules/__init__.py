"""What of a machine's set-up costs a training time, each with the evidence that was measured."""

from __future__ import annotations

from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.rules.compute import cores, graphics, python, threads
from rlprof.doctor.rules.finding import BAD, Remark
from rlprof.doctor.rules.memory_and_disk import disk, memory, processes
from rlprof.doctor.rules.timing import noise, recording


def judge(machine: Machine) -> tuple[Remark, ...]:
    """What is set up badly, the bad things first. Without evidence there is no remark."""
    groups = (threads, cores, python, graphics, recording, noise, memory, disk, processes)
    remarks = [remark for group in groups for remark in group(machine)]
    return tuple(sorted(remarks, key=lambda remark: remark.severity != BAD))
