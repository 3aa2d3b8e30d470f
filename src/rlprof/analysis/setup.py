"""What of a machine's set-up costs a training time, each with the evidence that was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rlprof.analysis.figures import duration, size
from rlprof.capture.machine.machine import Machine

BAD = "bad"
HINT = "hint"

SLOWER = 1.1
"""Times, for all threads against one: less than that is within what repeated measurements differ by."""
MUCH_SLOWER = 1.5
SLOW_CLOCK_NS = 500
"""A pair of readings that stays in the process takes 30 to 100 ns; one that enters the kernel, several times that."""
NOISY_SPREAD = 0.3
"""A comparison of two runs needs a number of runs that grows with its square: from here on, many."""
NOISY_OFF_CPU = 0.05
"""Of the time of work that never waits. On a core of one's own it is below a thousandth."""
BUSY_SHARE = 0.3
"""Of the cores, by other programs: of a few cores, that is one that a training cannot have."""
STOLEN_SHARE = 0.02
SLOW_FSYNC_NS = 50e6
"""A session is written about once a second: that would be 5 % of the time with a write under way."""
LITTLE_FREE = 0.1
"""Of memory. Below, the kernel gives up its file cache and then swaps."""
SWAPPED_SHARE = 0.02
"""Of memory. Less is what idle daemons leave there, and nobody reads it again."""
SMALL_SHM = 1 << 30
"""Containers get 64 MB unless told; a few workers' batches of images need more."""
LITTLE_DISK = 1 << 30
"""Checkpoints and a session's timeline take hundreds of megabytes."""
SLOW_SPAWN_NS = 200e6
"""Ten times what a local disk and a small site-packages take."""
BUSY_GPU = 0.1
SELF_SCALING_DRIVERS = ("intel_pstate", "amd-pstate", "amd-pstate-epp")
"""With these the governor named powersave still goes up to full speed under load."""
NETWORK_FILESYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "beegfs", "gpfs", "fuse.sshfs", "9p")


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that is set up badly."""

    key: str
    """A name that stays the same, for programs."""
    severity: str
    """"bad": costs time or gives wrong figures here, as measured. "hint": may, or only some trainings."""
    what: str
    why: str
    fix: str


def judge(machine: Machine) -> tuple[Remark, ...]:
    """What is set up badly, the bad things first. Without evidence there is no remark."""
    groups = (_threads, _cores, _python, _graphics, _recording, _noise, _memory, _disk, _processes)
    remarks = [remark for group in groups for remark in group(machine)]
    return tuple(sorted(remarks, key=lambda remark: remark.severity != BAD))


def _threads(machine: Machine) -> Iterator[Remark]:
    compute, cores = machine.compute, machine.cores
    if machine.compute_error is not None:
        yield Remark(
            "compute_broken",
            BAD,
            f"An installed library cannot be used: {machine.compute_error}",
            "A training that imports it fails in the same way.",
            "install it again: pip install --force-reinstall " + machine.compute_error.partition(":")[0],
        )
    if compute is None or compute.threads is None:
        return
    if compute.threads > math.ceil(cores.usable):
        yield Remark(
            "torch_threads",
            BAD,
            f"torch uses {compute.threads} threads, but there are {cores.usable:g} cores to run them on.",
            "The threads of one operation wait for each other: when one has no core, all stand still.",
            f"export OMP_NUM_THREADS={max(1, math.floor(cores.usable))}",
        )
    yield from _slower_with_threads(machine)


def _slower_with_threads(machine: Machine) -> Iterator[Remark]:
    """The worst of the cases: they have one cause and one fix."""
    compute = machine.compute
    assert compute is not None
    cases = (
        (compute.crowded, "With every core busy, a training step of a small network",
         "Environments in worker processes keep the cores busy like that: one thread of the learner waits for a core,"
         " and the others for that one."),
        (compute.learning, "A training step of a small network",
         "Most RL networks are small, and handing a small layer to another thread takes longer than computing it."),
        (compute.acting, "Acting with a small policy",
         "The policy is asked at every environment step, and a small batch gains nothing from threads."),
        (compute.matrix, "Even a product of 512 x 512 matrices",
         "Work that large gains from threads where there are cores for them: here they are busy, or not really there."),
    )  # fmt: skip
    measured = [(case.slowdown, case, what, why) for case, what, why in cases if case and case.slowdown]
    if not measured:
        return
    slowdown, case, what, why = max(measured, key=lambda item: item[0])
    if slowdown < SLOWER:
        return
    fix = "export OMP_NUM_THREADS=1, or torch.set_num_threads(1) in the training"
    alone = compute.learning.slowdown if compute.learning else None
    if case is compute.crowded and alone is not None and alone < 1:
        fix += f" (with no environments in worker processes, {compute.threads} are {1 / alone:.1f}x as fast as 1)"
    yield Remark(
        "slow_threads",
        BAD if slowdown >= MUCH_SLOWER else HINT,
        f"{what} takes {_times(slowdown)} as long with {compute.threads} torch threads as with 1:"
        f" {_time(case.all_ns)} against {_time(case.one_ns)}.",
        why,
        fix,
    )


def _cores(machine: Machine) -> Iterator[Remark]:
    cores = machine.cores
    if cores.usable < cores.logical:
        quota = cores.quota is not None and cores.quota == cores.usable
        reason = "a CPU quota (cgroup)" if quota else "this process's CPU affinity"
        whole = max(1, math.floor(cores.usable))
        yield Remark(
            "usable_cores",
            HINT,
            f"os.cpu_count() says {cores.logical}, but {reason} leaves {cores.usable:g}.",
            "Code that starts one environment a core starts too many; over a quota, all of them are stopped at once.",
            f"start at most {whole} workers, or raise the limit (docker run --cpus, or your batch system's setting)",
        )
    if "powersave" in cores.governors and cores.frequency_driver not in SELF_SCALING_DRIVERS:
        yield Remark(
            "governor",
            BAD,
            f"The CPU governor is powersave (driver {cores.frequency_driver or 'unknown'}): the lowest clock rate.",
            "Everything on the CPU runs at a fraction of its speed.",
            "sudo cpupower frequency-set -g performance",
        )


def _python(machine: Machine) -> Iterator[Remark]:
    python = machine.software.python
    if python.debug:
        yield Remark(
            "debug_python",
            BAD,
            f"Python {python.version} is a debug build.",
            "It runs Python code several times slower, and environments are mostly Python code.",
            "use a release build of Python",
        )
    elif python.optimized is False:
        yield Remark(
            "python_build",
            HINT,
            f"Python {python.version} was built without profile-guided optimization (--enable-optimizations).",
            "Python code, which environments mostly are, typically runs 10 to 20 % slower.",
            "PYTHON_CONFIGURE_OPTS='--enable-optimizations --with-lto' pyenv install, or another build of Python",
        )


def _graphics(machine: Machine) -> Iterator[Remark]:
    compute, gpus = machine.compute, machine.software.gpus
    if not gpus:
        return
    if compute is not None and compute.library == "torch" and not compute.cuda_available:
        cpu_build = compute.cuda_build is None
        build = "a CPU build" if cpu_build else f"built for CUDA {compute.cuda_build} but finds no device"
        yield Remark(
            "gpu_unused",
            BAD,
            f"There is a GPU ({gpus[0].name}), but torch {compute.version} is {build}.",
            "Training stays on the CPU, whatever device the script asks for.",
            "install the CUDA build that pytorch.org names for your driver"
            if cpu_build
            else "see whether nvidia-smi works and CUDA_VISIBLE_DEVICES is not empty",
        )
    for i, gpu in enumerate(gpus):
        if gpu.busy_share is not None and gpu.busy_share > BUSY_GPU:
            yield Remark(
                "gpu_busy",
                HINT,
                f"GPU {i} ({gpu.name}) is {gpu.busy_share:.0%} busy with something else.",
                "A training shares it, and times measured now hold for now only.",
                "see nvidia-smi; choose another with CUDA_VISIBLE_DEVICES",
            )


def _recording(machine: Machine) -> Iterator[Remark]:
    clock = machine.clock
    cost = f"A span costs {_time(clock.span_ns)}"
    if not clock.core_built:
        yield Remark(
            "core_missing",
            BAD,
            f"rlprof's C core is not built here. {cost} in Python.",
            "The C core records the same about a hundred times cheaper: more detail for less disturbance.",
            "install a C compiler (gcc or clang) and then: pip install --force-reinstall --no-deps rlprof",
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


def _noise(machine: Machine) -> Iterator[Remark]:
    cores, steady = machine.cores, machine.steadiness
    if steady.spread > NOISY_SPREAD or steady.off_cpu_share > NOISY_OFF_CPU:
        switched = "" if steady.switched_out is None else f"; times put off its core: {steady.switched_out}"
        yield Remark(
            "noisy",
            HINT,
            f"The same work takes {_time(steady.median_ns)}, but one time in twenty {_time(steady.p95_ns)} or more"
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


def _memory(machine: Machine) -> Iterator[Remark]:
    memory = machine.memory
    scarce = memory.available < LITTLE_FREE * memory.total
    if scarce:
        yield Remark(
            "little_memory",
            BAD,
            f"Of {size(memory.total)} of memory {size(memory.available)} are available.",
            "A replay buffer that does not fit is swapped, or the kernel ends the training.",
            "stop other programs, or make the replay buffer smaller (uint8 observations, no copy of the next ones)",
        )
    if memory.swap_used > SWAPPED_SHARE * memory.total:
        yield Remark(
            "swap",
            BAD if scarce else HINT,
            f"{size(memory.swap_used)} are in swap.",
            "What a training finds there it waits for, a thousand times longer than for memory.",
            "see what is in it: smem -s swap -r; empty it when memory is free: sudo swapoff -a && sudo swapon -a",
        )
    if memory.shm_total is not None and memory.shm_total < SMALL_SHM:
        yield Remark(
            "small_shm",
            HINT,
            f"/dev/shm has {size(memory.shm_total)}.",
            "DataLoader workers, shared-memory vector environments and Ray hand over data there; full, they crash.",
            "docker run --shm-size=8g (or --ipc=host)",
        )


def _disk(machine: Machine) -> Iterator[Remark]:
    disk = machine.disk
    if disk.fsync_ns is not None and disk.fsync_ns > SLOW_FSYNC_NS:
        yield Remark(
            "slow_disk",
            HINT,
            f"Writing 64 KiB safely to the disk takes {_time(disk.fsync_ns)} in {disk.folder}.",
            "Checkpoints and logs wait for it; rlprof writes from a thread of its own, about once a second.",
            "export RLPROF_DIR to a folder on a local disk, and keep checkpoints there too",
        )
    if disk.fsync_ns is None:
        yield Remark(
            "disk_unwritable",
            BAD,
            f"Nothing can be written in {disk.folder}.",
            "A session cannot be recorded there.",
            "export RLPROF_DIR to a folder of yours",
        )
    if disk.free is not None and disk.free < LITTLE_DISK:
        yield Remark(
            "little_disk",
            BAD,
            f"{size(disk.free)} of disk are free in {disk.folder}.",
            "A training that cannot write its checkpoint ends.",
            "make room, or export RLPROF_DIR to another disk",
        )
    if disk.filesystem in NETWORK_FILESYSTEMS:
        yield Remark(
            "network_disk",
            HINT,
            f"Sessions would be written to a network file system ({disk.filesystem}) in {disk.folder}.",
            "SQLite's log needs shared memory: a session there cannot be read from another machine while it runs.",
            "export RLPROF_DIR to a folder on a local disk, and copy the session afterwards",
        )


def _processes(machine: Machine) -> Iterator[Remark]:
    processes = machine.processes
    if processes is not None and processes.spawn_ns is not None and processes.spawn_ns > SLOW_SPAWN_NS:
        yield Remark(
            "slow_spawn",
            HINT,
            f"Starting a bare Python takes {_time(processes.spawn_ns)}.",
            "Every environment in a process of its own starts so, and imports its libraries on top.",
            "python -X importtime -c pass shows what takes it: often a network disk or a .pth file in site-packages",
        )


def _time(ns: float | None) -> str:
    return "?" if ns is None else duration(ns)


def _times(ratio: float) -> str:
    return f"{ratio:.0f} times" if ratio >= 9.5 else f"{ratio:.1f} times" if ratio >= 1.5 else f"{ratio:.2f} times"
