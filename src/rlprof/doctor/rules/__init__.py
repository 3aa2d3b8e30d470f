"""Rules that find what slows trainings down on a machine, each with the measured evidence."""

from __future__ import annotations

from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.rules.compute import cores, graphics, python, threads
from rlprof.doctor.rules.finding import BAD, Finding
from rlprof.doctor.rules.memory_and_disk import disk, memory, processes
from rlprof.doctor.rules.timing import noise, recording


def judge(machine: Machine) -> tuple[Finding, ...]:
    """All findings, the bad ones first. Without evidence there is no finding."""
    groups = (threads, cores, python, graphics, recording, noise, memory, disk, processes)
    findings = [finding for group in groups for finding in group(machine)]
    return tuple(sorted(findings, key=lambda finding: finding.severity != BAD))
