"""Rules about torch, cores, Python and GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rlprof.analysis.figures import duration
from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.rules.finding import BAD, HINT, Finding

SLOWER = 1.1
"""Factor of all threads against one thread: repeated measurements differ by less."""
MUCH_SLOWER = 1.5
BUSY_GPU = 0.1
SELF_SCALING_DRIVERS = ("intel_pstate", "amd-pstate", "amd-pstate-epp")
"""With these drivers the governor powersave still reaches full speed under load."""


def threads(machine: Machine) -> Iterator[Finding]:
    compute, cores = machine.compute, machine.cores
    if machine.compute_error is not None:
        yield Finding(
            "compute_broken",
            BAD,
            f"An installed library cannot be used: {machine.compute_error}",
            "A training that imports it fails in the same way.",
            "Install it again: pip install --force-reinstall " + machine.compute_error.partition(":")[0],
        )
    if compute is None or compute.threads is None:
        return
    if compute.threads > math.ceil(cores.usable):
        yield Finding(
            "torch_threads",
            BAD,
            f"torch uses {compute.threads} threads, but only {cores.usable:g} cores are usable.",
            "The threads of one operation wait for each other. While one of them has no core, all of them wait.",
            f"export OMP_NUM_THREADS={max(1, math.floor(cores.usable))}",
        )
    yield from _slower_with_threads(machine)


def _slower_with_threads(machine: Machine) -> Iterator[Finding]:
    """Only the worst case, because all have one cause and one fix."""
    compute = machine.compute
    assert compute is not None
    cases = (
        (compute.crowded, "With every core busy, a training step of a small network",
         "Environments in worker processes keep the cores busy like that. One thread of the learner waits for a core,"
         " and the others wait for that thread."),
        (compute.learning, "A training step of a small network",
         "Most RL networks are small, and handing a small layer to another thread takes longer than computing it."),
        (compute.acting, "Acting with a small policy",
         "The policy runs at every environment step, and a small batch gains nothing from threads."),
        (compute.matrix, "Even the product of two 512 x 512 matrices",
         "Work of this size gains from threads that have a core. Here the cores are busy, or fewer than they seem."),
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
    yield Finding(
        "slow_threads",
        BAD if slowdown >= MUCH_SLOWER else HINT,
        f"{what} takes {_times(slowdown)} as long with {compute.threads} torch threads as with 1:"
        f" {duration(case.all_ns or 0)} against {duration(case.one_ns or 0)}.",
        why,
        fix,
    )


def cores(machine: Machine) -> Iterator[Finding]:
    cores = machine.cores
    if cores.usable < cores.logical:
        quota = cores.quota is not None and cores.quota == cores.usable
        reason = "a CPU quota (cgroup)" if quota else "this process's CPU affinity"
        whole = max(1, math.floor(cores.usable))
        yield Finding(
            "usable_cores",
            HINT,
            f"os.cpu_count() is {cores.logical}, but {reason} leaves {cores.usable:g} cores.",
            "Code that starts one environment per core starts too many. Above a quota, all are stopped at once.",
            f"Start at most {whole} workers, or raise the limit (docker run --cpus, or your batch system's setting)",
        )
    if "powersave" in cores.governors and cores.frequency_driver not in SELF_SCALING_DRIVERS:
        yield Finding(
            "governor",
            BAD,
            f"The CPU governor is powersave (driver {cores.frequency_driver or 'unknown'}): the clock rate stays low.",
            "Everything on the CPU runs at a fraction of its speed.",
            "sudo cpupower frequency-set -g performance",
        )


def python(machine: Machine) -> Iterator[Finding]:
    python = machine.software.python
    if python.debug:
        yield Finding(
            "debug_python",
            BAD,
            f"Python {python.version} is a debug build.",
            "It runs Python code several times slower, and most environments are Python code.",
            "Use a release build of Python.",
        )
    elif python.optimized is False:
        yield Finding(
            "python_build",
            HINT,
            f"Python {python.version} was built without profile-guided optimization (--enable-optimizations).",
            "Python code typically runs 10 to 20 % slower, and most environments are Python code.",
            "Use another build of Python, or PYTHON_CONFIGURE_OPTS='--enable-optimizations --with-lto' pyenv install",
        )


def graphics(machine: Machine) -> Iterator[Finding]:
    compute, gpus = machine.compute, machine.software.gpus
    if not gpus:
        return
    if compute is not None and compute.library == "torch" and not compute.cuda_available:
        cpu_build = compute.cuda_build is None
        build = "a CPU build" if cpu_build else f"built for CUDA {compute.cuda_build} but finds no device"
        yield Finding(
            "gpu_unused",
            BAD,
            f"There is a GPU ({gpus[0].name}), but torch {compute.version} is {build}.",
            "Trainings run on the CPU, whatever device the script chooses.",
            "Install the CUDA build that pytorch.org lists for your driver."
            if cpu_build
            else "Check that nvidia-smi works and that CUDA_VISIBLE_DEVICES is not empty.",
        )
    for i, gpu in enumerate(gpus):
        if gpu.busy_share is not None and gpu.busy_share > BUSY_GPU:
            yield Finding(
                "gpu_busy",
                HINT,
                f"GPU {i} ({gpu.name}) is {gpu.busy_share:.0%} busy with something else.",
                "A training shares the GPU, so its times depend on the other program.",
                "Look at nvidia-smi, and choose another GPU with CUDA_VISIBLE_DEVICES.",
            )


def _times(ratio: float) -> str:
    return f"{ratio:.0f} times" if ratio >= 9.5 else f"{ratio:.1f} times" if ratio >= 1.5 else f"{ratio:.2f} times"
