"""What there is of cores, memory and disk, and how much of it is taken."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped, unused-ignore]  # it ships no types

from rlprof.doctor.machine.cgroup import Limits
from rlprof.session.folder import sessions_folder

_CPUS = Path("/sys/devices/system/cpu")
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Cores:
    logical: int
    """What os.cpu_count() says, and with it much code that chooses a number of workers."""
    affinity: int | None = None
    """Those this process may run on."""
    quota: float | None = None
    """A container's or batch system's limit, in cores' worth of CPU time."""
    busy_share: float | None = None
    """Of all logical cores, before anything was measured: other people's work."""
    stolen_share: float | None = None
    """Of all logical cores: taken by the hypervisor for other guests."""
    load_1m: float | None = None
    governors: tuple[str, ...] = ()
    """How the kernel chooses the clock rate; empty where it does not say."""
    frequency_driver: str | None = None

    @property
    def usable(self) -> float:
        """Cores' worth of CPU time that a training here can really get."""
        return min(limit for limit in (self.logical, self.affinity, self.quota) if limit is not None)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes."""

    total: int
    available: int
    limit: int | None = None
    """A container's or batch system's."""
    swap_total: int = 0
    swap_used: int = 0
    shm_total: int | None = None
    """/dev/shm, through which worker processes hand over tensors."""
    shm_free: int | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """Where sessions go."""

    folder: str
    free: int | None = None
    filesystem: str | None = None
    fsync_ns: float | None = None
    """To write 64 KiB and have it on the disk: the median."""
    fsync_worst_ns: int | None = None


def look_at_cores(limits: Limits) -> Cores:
    """Takes half a second, in which this process does nothing."""
    # Not psutil's own percentages: over less than a second they come out too small.
    before = psutil.cpu_times()
    time.sleep(_LOOK_S)
    spent = {name: after - getattr(before, name) for name, after in psutil.cpu_times()._asdict().items()}
    for inside in ("guest", "guest_nice"):  # Linux counts them as user time already
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
    """Where sessions go; as long as nothing is there yet, the folder that it will be made in."""
    folder = sessions_folder()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return str(folder)


def disk_free(folder: str) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def filesystem(folder: str) -> str | None:
    """Its kind: `ext4`, `nfs4`. That of the innermost mount the folder lies in."""
    place = Path(folder).resolve()
    try:
        mounts = psutil.disk_partitions(all=True)
    except (OSError, RuntimeError):
        return None
    around = [mount for mount in mounts if mount.fstype and place.is_relative_to(mount.mountpoint)]
    # Of two mounted on the same folder, the later hides the earlier.
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
