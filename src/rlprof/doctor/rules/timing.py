"""Rules about clocks, the C core, and the noise of this machine."""

from __future__ import annotations

from collections.abc import Iterator

from rlprof.analysis.figures import duration, many
from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.rules.finding import BAD, HINT, Finding

SLOW_CLOCK_NS = 500
"""Two readings inside the process take 30 to 100 ns. Through the kernel they take several times that."""
NOISY_SPREAD = 0.3
"""Spread from which comparisons need many runs: their number grows with its square."""
NOISY_OFF_CPU = 0.05
"""Fraction of the time of work that never waits. On a core of its own it is below a thousandth."""
BUSY_SHARE = 0.3
"""Fraction of the cores that other programs use. On a small machine this is one whole core."""
STOLEN_SHARE = 0.02


def _again(source: str | None) -> str:
    """The command that installs rlprof again, which compiles it."""
    where = ", in the folder that has rlprof's source" if source is None else ""
    return f"{where}: pip install --force-reinstall --no-deps {source or '.'}"


def recording(machine: Machine) -> Iterator[Finding]:
    clock = machine.clock
    cost = f"A span costs {duration(clock.span_ns)}"
    if not clock.core_built:
        yield Finding(
            "core_missing",
            BAD,
            f"rlprof's C core is not built here. {cost} in Python.",
            "The C core records the same at about a hundredth of the cost, and disturbs a training less.",
            f"Install a C compiler (gcc or clang), then{_again(machine.software.source)}",
        )
    elif clock.core == "python":
        yield Finding(
            "core_unused",
            HINT,
            f"rlprof records in Python although its C core is built. {cost}.",
            "The C core records the same at about a hundredth of the cost.",
            "unset RLPROF_CORE",
        )
    if clock.pair_ns > SLOW_CLOCK_NS:
        yield Finding(
            "slow_clock",
            BAD,
            f"Reading the clock twice takes {clock.pair_ns:.0f} ns, because the kernel uses a slow clock source.",
            "Everything that reads the time pays for it: rlprof, torch.profiler, logging, frame limiters.",
            "Boot with clocksource=tsc if /sys/devices/system/clocksource/clocksource0/available_clocksource lists it.",
        )
    # Other processors have no TSC.
    if (
        clock.tsc_refusal is not None
        and machine.software.system.startswith("Linux")
        and "x86_64" in machine.software.system
    ):
        yield Finding(
            "tsc_refused",
            HINT,
            f"rlprof cannot use the CPU's counter (TSC) as its clock: {clock.tsc_refusal}. {cost}.",
            "The system's clock costs more per reading. The figures are just as accurate.",
            "Boot with clocksource=tsc. In a virtual machine, the host must provide an invariant TSC.",
        )
    if clock.cpu == "off":
        yield Finding(
            "cpu_time_off",
            HINT,
            "rlprof does not read the CPU time of threads here, because that is expensive on this system.",
            "Reports cannot distinguish work from waiting for a core.",
            "Set RLPROF_CPU=syscall, which costs about 2 us per span.",
        )


def noise(machine: Machine) -> Iterator[Finding]:
    cores, steady = machine.cores, machine.steadiness
    if steady.spread > NOISY_SPREAD or steady.off_cpu_share > NOISY_OFF_CPU:
        switched = "" if steady.switched_out is None else f", {many(steady.switched_out, 'preemption')}"
        yield Finding(
            "noisy",
            HINT,
            f"The same work takes {duration(steady.median_ns)}, but in one of twenty cases"
            f" {duration(steady.p95_ns)} or more"
            f" ({steady.off_cpu_share:.1%} of the time off the CPU{switched}).",
            "A smaller difference between two runs may be chance.",
            "Compare several interleaved runs (rlprof compare), stop other programs, or use a dedicated machine.",
        )
    if cores.busy_share is not None and cores.busy_share > BUSY_SHARE:
        load = "" if cores.load_1m is None else f" (load {cores.load_1m:.1f})"
        yield Finding(
            "busy",
            BAD,
            f"Other programs keep {cores.busy_share:.0%} of {cores.logical} cores busy{load}.",
            "A training gets only the rest, and its times change with their load.",
            "Find them with top, and stop them or wait.",
        )
    if cores.stolen_share is not None and cores.stolen_share > STOLEN_SHARE:
        yield Finding(
            "stolen",
            HINT,
            f"The hypervisor gives {cores.stolen_share:.0%} of this virtual machine's CPU time to others.",
            "Everything seems slower from time to time.",
            "Use an instance with dedicated cores.",
        )
