"""The clock and the core that record, and how steady this machine is."""

from __future__ import annotations

from collections.abc import Iterator

from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.rules.finding import BAD, HINT, Remark, optional_duration

SLOW_CLOCK_NS = 500
"""A pair of readings that stays in the process takes 30 to 100 ns; one that enters the kernel, several times that."""
NOISY_SPREAD = 0.3
"""A comparison of two runs needs a number of runs that grows with its square: from here on, many."""
NOISY_OFF_CPU = 0.05
"""Of the time of work that never waits. On a core of one's own it is below a thousandth."""
BUSY_SHARE = 0.3
"""Of the cores, by other programs: of a few cores, that is one that a training cannot have."""
STOLEN_SHARE = 0.02


def _again(source: str | None) -> str:
    """Install rlprof once more, which compiles it."""
    where = ", in the folder that has rlprof's source" if source is None else ""
    return f"{where}: pip install --force-reinstall --no-deps {source or '.'}"


def recording(machine: Machine) -> Iterator[Remark]:
    clock = machine.clock
    cost = f"A span costs {optional_duration(clock.span_ns)}"
    if not clock.core_built:
        yield Remark(
            "core_missing",
            BAD,
            f"rlprof's C core is not built here. {cost} in Python.",
            "The C core records the same about a hundred times cheaper: more detail for less disturbance.",
            f"install a C compiler (gcc or clang), then{_again(machine.software.source)}",
        )
    elif clock.core == "python":
        yield Remark(
            "core_unused",
            HINT,
            f"rlprof records in Python although its C core is built. {cost}.",
            "The C core records the same about a hundred times cheaper.",
            "unset RLPROF_CORE",
        )
    if clock.pair_ns > SLOW_CLOCK_NS:
        yield Remark(
            "slow_clock",
            BAD,
            f"Reading the clock twice takes {clock.pair_ns:.0f} ns: the kernel has a slow clock source.",
            "Whatever times itself pays that: rlprof, torch.profiler, logging, frame limiters.",
            "boot with clocksource=tsc, if /sys/devices/system/clocksource/clocksource0/available_clocksource lists it",
        )
    # On other processors there is none to refuse, and nothing to set up.
    if (
        clock.tsc_refusal is not None
        and machine.software.system.startswith("Linux")
        and "x86_64" in machine.software.system
    ):
        yield Remark(
            "tsc_refused",
            HINT,
            f"rlprof cannot time with the CPU's counter (TSC): {clock.tsc_refusal}. {cost}.",
            "The system's clock costs more a reading; the figures are as right.",
            "boot with clocksource=tsc; in a virtual machine, its host must pass an invariant TSC on",
        )
    if clock.cpu == "off":
        yield Remark(
            "cpu_time_off",
            HINT,
            "rlprof does not read thread CPU time here: there is no cheap way.",
            "Reports cannot tell work from waiting for a core.",
            "export RLPROF_CPU=syscall, at about 2 us a span",
        )


def noise(machine: Machine) -> Iterator[Remark]:
    cores, steady = machine.cores, machine.steadiness
    if steady.spread > NOISY_SPREAD or steady.off_cpu_share > NOISY_OFF_CPU:
        switched = "" if steady.switched_out is None else f"; times put off its core: {steady.switched_out}"
        yield Remark(
            "noisy",
            HINT,
            f"The same work takes {optional_duration(steady.median_ns)}, but one time in twenty"
            f" {optional_duration(steady.p95_ns)} or more"
            f" ({steady.off_cpu_share:.1%} of the time off the CPU{switched}).",
            "A difference between two runs that is smaller than that may be chance.",
            "compare several interleaved runs, never one with one; stop other programs; take a machine of your own",
        )
    if cores.busy_share is not None and cores.busy_share > BUSY_SHARE:
        load = "" if cores.load_1m is None else f" (load {cores.load_1m:.1f})"
        yield Remark(
            "busy",
            BAD,
            f"Other programs keep {cores.busy_share:.0%} of {cores.logical} cores busy{load}.",
            "A training gets what they leave, and its times change with theirs.",
            "see what runs (top), and stop it or wait",
        )
    if cores.stolen_share is not None and cores.stolen_share > STOLEN_SHARE:
        yield Remark(
            "stolen",
            HINT,
            f"The hypervisor gives {cores.stolen_share:.0%} of this virtual machine's CPU time to others.",
            "It looks as if everything were slower, now and then.",
            "take an instance with dedicated cores",
        )
