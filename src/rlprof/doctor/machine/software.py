"""What is installed here, and how it was built."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sqlite3
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_LIBRARIES = ("torch", "numpy", "matplotlib", "tensorboard", "nvidia-ml-py")
_MODULES = {"nvidia-ml-py": "pynvml"}
"""Modules whose name differs from that of their distribution."""
_THREAD_SETTINGS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_NVIDIA = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True, slots=True)
class Python:
    version: str
    implementation: str
    debug: bool
    free_threaded: bool
    optimized: bool | None
    """True if built with profile-guided optimization; None if unknown."""


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    memory_total: int | None = None
    memory_used: int | None = None
    busy_share: float | None = None


@dataclass(frozen=True, slots=True)
class Software:
    system: str
    python: Python
    sqlite: str
    libraries: Mapping[str, str | None]
    """Versions of libraries; None for one that is not installed."""
    thread_settings: Mapping[str, str | None]
    """Environment variables that set a number of threads; None for one that is not set."""
    gpus: tuple[Gpu, ...] = ()
    source: str | None = None
    """Argument of `pip install` that installs rlprof again, quoted for a shell; None if the source is gone."""


def look_at_software() -> Software:
    return Software(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=_python(),
        sqlite=sqlite3.sqlite_version,
        libraries={name: _version(name) for name in _LIBRARIES},
        thread_settings={name: os.environ.get(name) for name in _THREAD_SETTINGS},
        gpus=_gpus(),
        source=_source(),
    )


def _source() -> str | None:
    """The source that pip has recorded: usually a folder or a repository, not an index."""
    try:
        written = metadata.distribution("rlprof").read_text("direct_url.json")
        if written is None:
            return "rlprof"
        origin = json.loads(written)
        url = origin["url"]
        if "vcs_info" in origin:
            return shlex.quote(f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}")
        path = unquote(urlsplit(url).path) if url.startswith("file:") else None
        if path is None:
            return shlex.quote(url)
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return editable + shlex.quote(path) if Path(path).exists() else None
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None  # it is not installed, but on the path


def _python() -> Python:
    arguments = sysconfig.get_config_var("CONFIG_ARGS")
    return Python(
        version=platform.python_version(),
        implementation=platform.python_implementation(),
        debug=hasattr(sys, "gettotalrefcount"),
        free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        optimized="--enable-optimizations" in arguments if arguments else None,
    )


def _version(name: str) -> str | None:
    if find_spec(_MODULES.get(name, name)) is None:
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # some builds of torch have another name
        return "installed"


def _gpus() -> tuple[Gpu, ...]:
    """From NVML. Without its library, only the names, from the driver."""
    try:
        import pynvml  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415 - optional, and ships no types
    except ImportError:
        return _gpus_of_driver()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:  # no driver: the normal case on a machine without a GPU
        return _gpus_of_driver()
    try:
        return tuple(_gpu(pynvml, pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError:
        return _gpus_of_driver()
    finally:
        pynvml.nvmlShutdown()


def _gpu(pynvml: Any, handle: object) -> Gpu:
    name = pynvml.nvmlDeviceGetName(handle)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    try:
        busy = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
    except pynvml.NVMLError:  # not on every card
        busy = None
    shown = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    return Gpu(shown, int(memory.total), int(memory.used), busy)


def _gpus_of_driver() -> tuple[Gpu, ...]:
    names = []
    for file in sorted(_NVIDIA.glob("*/information")):
        try:
            lines = file.read_text().splitlines()
        except OSError:
            continue
        names += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return tuple(Gpu(name) for name in names)
