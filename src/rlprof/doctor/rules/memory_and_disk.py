"""Rules about memory, disk and the start of processes."""

from __future__ import annotations

from collections.abc import Iterator

from rlprof.analysis.figures import duration, size
from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.rules.finding import BAD, HINT, Finding

SLOW_FSYNC_NS = 50e6
"""Time of a write. A session is written about once per second, so this is 5 % of the time."""
LITTLE_FREE = 0.1
"""Fraction of memory. Below it, the kernel drops its file cache and then swaps."""
SWAPPED_SHARE = 0.02
"""Fraction of memory. Less is what idle daemons leave in swap and never read again."""
SMALL_SHM = 1 << 30
"""Containers have 64 MB by default. Batches of images from a few workers need more."""
LITTLE_DISK = 1 << 30
"""Checkpoints and a session's timeline take hundreds of megabytes."""
SLOW_SPAWN_NS = 200e6
"""Ten times the start from a local disk with a small site-packages."""
NETWORK_FILESYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "beegfs", "gpfs", "fuse.sshfs", "9p")


def memory(machine: Machine) -> Iterator[Finding]:
    memory = machine.memory
    scarce = memory.available < LITTLE_FREE * memory.total
    if scarce:
        yield Finding(
            "little_memory",
            BAD,
            f"Only {size(memory.available)} of {size(memory.total)} of memory are available.",
            "A replay buffer that does not fit is swapped, or the kernel ends the training.",
            "Stop other programs, or make the replay buffer smaller (uint8 observations, no copy of the next ones).",
        )
    if memory.swap_used > SWAPPED_SHARE * memory.total:
        yield Finding(
            "swap",
            BAD if scarce else HINT,
            f"{size(memory.swap_used)} of memory is in swap.",
            "Reading it back takes a thousand times longer than reading memory.",
            "List it with smem -s swap -r. Empty it when memory is free: sudo swapoff -a && sudo swapon -a",
        )
    if memory.shm_total is not None and memory.shm_total < SMALL_SHM:
        yield Finding(
            "small_shm",
            HINT,
            f"/dev/shm has only {size(memory.shm_total)}.",
            "DataLoader workers, shared-memory environments and Ray pass data through it, and crash when it is full.",
            "docker run --shm-size=8g (or --ipc=host)",
        )


def disk(machine: Machine) -> Iterator[Finding]:
    disk = machine.disk
    if disk.fsync_ns is not None and disk.fsync_ns > SLOW_FSYNC_NS:
        yield Finding(
            "slow_disk",
            HINT,
            f"Writing 64 KiB safely to the disk takes {duration(disk.fsync_ns)} in {disk.folder}.",
            "Checkpoints and logs wait for the disk. rlprof itself writes in a separate thread, once per second.",
            "Set RLPROF_DIR to a folder on a local disk, and keep checkpoints there, too.",
        )
    if disk.fsync_ns is None:
        yield Finding(
            "disk_unwritable",
            BAD,
            f"{disk.folder} is not writable.",
            "Sessions cannot be recorded there.",
            "Set RLPROF_DIR to a folder of yours.",
        )
    if disk.free is not None and disk.free < LITTLE_DISK:
        yield Finding(
            "little_disk",
            BAD,
            f"Only {size(disk.free)} of disk is free in {disk.folder}.",
            "A training that cannot write its checkpoint fails.",
            "Free some space, or set RLPROF_DIR to a folder on another disk.",
        )
    if disk.filesystem in NETWORK_FILESYSTEMS:
        yield Finding(
            "network_disk",
            HINT,
            f"Sessions would be written to a network file system ({disk.filesystem}) in {disk.folder}.",
            "SQLite's log needs shared memory, so another machine cannot read a session while it is recorded.",
            "Set RLPROF_DIR to a folder on a local disk, and copy the session afterwards.",
        )


def processes(machine: Machine) -> Iterator[Finding]:
    processes = machine.processes
    if processes is not None and processes.spawn_ns is not None and processes.spawn_ns > SLOW_SPAWN_NS:
        yield Finding(
            "slow_spawn",
            HINT,
            f"Starting a bare Python takes {duration(processes.spawn_ns)}.",
            "Every environment process starts like this, and then imports its libraries.",
            "Run python -X importtime -c pass to find the cause: often a network disk or a .pth file in site-packages.",
        )
