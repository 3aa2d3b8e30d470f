"""Limits of a container or a batch system: CPU quota and memory, from cgroup v1 and v2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NO_LIMIT = 1 << 60
"""Larger limits mean unlimited: cgroup v1 writes the largest number of whole pages."""


@dataclass(frozen=True, slots=True)
class Limits:
    """None means no limit, or an unreadable one."""

    cpu_quota: float | None = None
    """CPU quota in cores."""
    memory_bytes: int | None = None


def read_limits(membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Limits:
    """The tightest limit of this process's group and of all groups around it, because all of them apply."""
    quotas: list[float] = []
    sizes: list[int] = []
    for hierarchy, path in _memberships(membership):
        if not hierarchy:
            folders = [*_upwards(root, path), *_upwards(root / "unified", path)]
        else:
            folders = [folder for name in {*hierarchy, ",".join(hierarchy)} for folder in _upwards(root / name, path)]
        for folder in folders:
            quotas += _quota_v2(folder) if not hierarchy else _quota_v1(folder) if "cpu" in hierarchy else []
            if not hierarchy or "memory" in hierarchy:
                sizes += _sizes(folder / ("memory.limit_in_bytes" if hierarchy else "memory.max"))
    return Limits(min(quotas, default=None), min(sizes, default=None))


def _memberships(membership: Path) -> Iterator[tuple[list[str], str]]:
    """The controllers of each hierarchy (empty for v2), and the path of the group in it."""
    for line in _read(membership).splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon:
            yield [name for name in controllers.split(",") if name], path


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """The folder of the group and those around it. In a container, often only the root exists."""
    group = Path(path.lstrip("/"))
    for part in (group, *group.parents):
        folder = mount / part
        if folder.is_dir():
            yield folder


def _quota_v2(folder: Path) -> list[float]:
    words = _read(folder / "cpu.max").split()
    return _quota(words[0], words[1]) if len(words) == 2 else []


def _quota_v1(folder: Path) -> list[float]:
    return _quota(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))


def _quota(quota: str, period: str) -> list[float]:
    try:
        allowed, of = int(quota), int(period)
    except ValueError:  # "max", or no such file
        return []
    return [allowed / of] if allowed > 0 and of > 0 else []


def _sizes(file: Path) -> list[int]:
    try:
        size = int(_read(file))
    except ValueError:
        return []
    return [size] if 0 < size < _NO_LIMIT else []


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
