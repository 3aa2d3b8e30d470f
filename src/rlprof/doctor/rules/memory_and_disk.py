"""Memory, disk and the start of processes."""

from __future__ import annotations

from collections.abc import Iterator

from rlprof.analysis.figures import size
from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.rules.finding import BAD, HINT, Remark, optional_duration

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
NETWORK_FILESYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "beegfs", "gpfs", "fuse.sshfs", "9p")


def memory(machine: Machine) -> Iterator[Remark]:
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


def disk(machine: Machine) -> Iterator[Remark]:
    disk = machine.disk
    if disk.fsync_ns is not None and disk.fsync_ns > SLOW_FSYNC_NS:
        yield Remark(
            "slow_disk",
            HINT,
            f"Writing 64 KiB safely to the disk takes {optional_duration(disk.fsync_ns)} in {disk.folder}.",
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


def processes(machine: Machine) -> Iterator[Remark]:
    processes = machine.processes
    if processes is not None and processes.spawn_ns is not None and processes.spawn_ns > SLOW_SPAWN_NS:
        yield Remark(
            "slow_spawn",
            HINT,
            f"Starting a bare Python takes {optional_duration(processes.spawn_ns)}.",
            "Every environment in a process of its own starts so, and imports its libraries on top.",
            "python -X importtime -c pass shows what takes it: often a network disk or a .pth file in site-packages",
        )
