"""Cores, memory and disk, and how much of them is in use."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil  # type: ignore[import-untyped, unused-ignore]  # it ships no types

from rlprof.doctor.machine.cgroup import Limits
from rlprof.doctor.machine.speed import measure_fsync
from rlprof.session.folder import sessions_folder

_CPUS = Path("/sys/devices/system/cpu")
_LOOK_S = 0.5
_WRITES = 15


@dataclass(frozen=True, slots=True)
class Cores:
    logical: int
    """os.cpu_count(), which much code uses as its number of workers."""
    affinity: int | None = None
    """Cores that this process may run on."""
    quota: float | None = None
    """CPU limit of a container or batch system, in cores."""
    busy_share: float | None = None
    """Fraction of all logical cores that other programs used before the measurements."""
    stolen_share: float | None = None
    """Fraction of all logical cores that the hypervisor gave to other guests."""
    load_1m: float | None = None
    governors: tuple[str, ...] = ()
    """How the kernel chooses the clock rate; empty if unknown."""
    frequency_driver: str | None = None

    @property
    def usable(self) -> float:
        """CPU time that a training can get here, in cores."""
        return min(limit for limit in (self.logical, self.affinity, self.quota) if limit is not None)


@dataclass(frozen=True, slots=True)
class Memory:
    """Sizes in bytes."""

    total: int
    available: int
    limit: int | None = None
    """Limit of a container or batch system."""
    swap_total: int = 0
    swap_used: int = 0
    shm_total: int | None = None
    """/dev/shm, through which worker processes pass tensors."""
    shm_free: int | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """The folder for sessions."""

    folder: str
    free: int | None = None
    filesystem: str | None = None
    fsync_ns: float | None = None
    """Median time until 64 KiB are on the disk."""
    fsync_worst_ns: int | None = None


def look_at_cores(limits: Limits) -> Cores:
    """Takes half a second, during which this process sleeps."""
    # psutil's own percentages are too small over less than a second.
    before = psutil.cpu_times()
    time.sleep(_LOOK_S)
    spent = {name: after - getattr(before, name) for name, after in psutil.cpu_times()._asdict().items()}
    for inside in ("guest", "guest_nice"):  # Linux includes them in user time
        spent.pop(inside, None)
    whole = sum(spent.values())
    idle = spent["idle"] + spent.get("iowait", 0.0)
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return Cores(
        logical=os.cpu_count() or 1,
        affinity=affinity,
        quota=limits.cpu_quota,
        busy_share=min(1.0, max(0.0, 1 - idle / whole)) if whole > 0 else None,
        stolen_share=max(0.0, spent["steal"] / whole) if whole > 0 and "steal" in spent else None,
        load_1m=_load(),
        governors=tuple(sorted({_word(file) for file in _CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {""})),
        frequency_driver=_word(_CPUS / "cpu0" / "cpufreq" / "scaling_driver") or None,
    )


def look_at_memory(limits: Limits) -> Memory:
    memory = psutil.virtual_memory()
    try:
        swap = psutil.swap_memory()
        swap_total, swap_used = swap.total, swap.used
    except (OSError, RuntimeError):  # psutil cannot read it in some sandboxes
        swap_total = swap_used = 0
    shm = shutil.disk_usage("/dev/shm") if os.path.isdir("/dev/shm") else None
    return Memory(
        total=memory.total,
        available=memory.available,
        limit=limits.memory_bytes if limits.memory_bytes and limits.memory_bytes < memory.total else None,
        swap_total=swap_total,
        swap_used=swap_used,
        shm_total=shm.total if shm else None,
        shm_free=shm.free if shm else None,
    )


def folder_for_sessions() -> str:
    """The folder for sessions, or its first parent that exists."""
    folder = sessions_folder()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return str(folder)


def look_at_disk() -> Disk:
    folder = folder_for_sessions()
    times = measure_fsync(folder, _WRITES)
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        free = None
    return Disk(folder, free, filesystem(folder), median(times) if times else None, max(times, default=None))


def filesystem(folder: str) -> str | None:
    """File system of the innermost mount around the folder: `ext4`, `nfs4`."""
    place = Path(folder).resolve()
    try:
        mounts = psutil.disk_partitions(all=True)
    except (OSError, RuntimeError):
        return None
    around = [mount for mount in mounts if mount.fstype and place.is_relative_to(mount.mountpoint)]
    # If two are mounted on the same folder, the later one hides the earlier.
    return max(enumerate(around), key=lambda item: (len(item[1].mountpoint), item[0]))[1].fstype if around else None


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def _word(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
