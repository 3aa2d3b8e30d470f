"""Description of a run: its command, machine, versions and settings."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from rlprof.session.process import identity_of
from rlprof.session.secrets import mask_command, mask_setting, mask_text

LONGEST_TEXT = 100_000
"""Maximum length of a name, a word of the command line or a setting. Longer ones are cut."""

Setting = str | int | float | bool | None

PACKAGES = (
    "rlprof", "torch", "numpy", "gymnasium", "stable-baselines3", "sb3-contrib", "torchrl", "tensordict", "ray",
    "poke-env", "jax", "pufferlib",
)  # fmt: skip
"""Packages whose versions matter for the speed of a training."""


@dataclass(frozen=True, slots=True)
class Git:
    """The git revision of the training's code."""

    revision: str
    branch: str
    changed: bool
    """True if files differed from the revision."""


@dataclass(frozen=True, slots=True)
class Info:
    """Description of a run, fixed when recording begins."""

    name: str
    started: int
    """Unix time in ns."""
    origin: int
    """The ledger's clock at that time."""
    pid: int
    command: tuple[str, ...]
    """The command line. Likely secrets are masked here, in the environment and in the settings."""
    folder: str
    """The working directory."""
    python: str
    platform: str
    host: str
    processor: str
    cores: int
    """Cores that this process may use."""
    machine_cores: int
    memory: int
    """Memory of the machine in bytes."""
    core: str
    """ "c" or "python": which ledger recorded it."""
    packages: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables that change a training's speed, if they were set."""
    git: Git | None = None
    settings: dict[str, Setting] = field(default_factory=dict)
    """Settings of the training, given by the user."""
    process: str = ""
    """Identity of the process, because process numbers are reused: see process.py. Empty in old sessions."""


def gather(name: str, origin: int, core: str, settings: Mapping[str, Any]) -> Info:
    """Describe this process and machine."""
    try:
        here = Path.cwd()
    except OSError:  # the folder was deleted
        here = None
    return Info(
        name=readable(name),
        started=time.time_ns(),
        origin=origin,
        pid=os.getpid(),
        command=mask_command(map(readable, sys.orig_argv)),
        folder=readable(str(here)) if here else "",
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        host=platform.node(),
        processor=_processor(),
        cores=_cores(),
        machine_cores=os.cpu_count() or 1,
        memory=psutil.virtual_memory().total,
        core=core,
        packages=_packages(),
        environment={name: mask_text(readable(os.environ[name])) for name in _VARIABLES if name in os.environ},
        git=next((git for git in map(_git, _code_folders(here)) if git), None),
        settings=_settings(settings),
        process=identity_of(os.getpid()) or "",
    )


def described(info: Info, name: str | None, settings: Mapping[str, Any]) -> Info:
    """The description with the name and settings that the program itself gives."""
    return replace(info, name=readable(name or info.name), settings=info.settings | _settings(settings))


_VARIABLES = (
    "OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "KMP_AFFINITY",
    "NUMEXPR_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF", "TORCHDYNAMO_DISABLE", "TORCHRL_PROFILING", "XLA_FLAGS", "LD_PRELOAD",
    "MALLOC_ARENA_MAX", "PYTHONMALLOC", "PYTHONOPTIMIZE", "PYTHONDEVMODE", "RLPROF_CORE", "RLPROF_CLOCK", "RLPROF_CPU",
)  # fmt: skip


def readable(text: str) -> str:
    """Replace what UTF-8 or SQLite's JSON cannot hold: NUL and lone surrogates, as in a name that is not UTF-8."""
    return text[:LONGEST_TEXT].replace("\0", "?").encode("utf-8", "replace").decode()


def _settings(settings: Mapping[str, Any]) -> dict[str, Setting]:
    return {readable(str(name)): _plain(str(name), value) for name, value in settings.items()}


def _plain(name: str, value: Any) -> Setting:
    """A setting as a JSON value, without secrets. Objects become the text that they print."""
    try:
        masked = mask_setting(name, value[:LONGEST_TEXT] if isinstance(value, str) else value)
        if masked is None or isinstance(masked, bool):
            return masked
        if isinstance(masked, (int, float)) and type(masked) in (int, float) and abs(masked) < 2**63:
            return masked
        return readable(str(masked)) if isinstance(value, str) else readable(str(masked))[:500]
    except Exception:
        return f"a {type(value).__name__}"


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # no /proc
    return platform.processor() or platform.machine()


def _packages() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _code_folders(here: Path | None) -> list[Path]:
    """Folders that may hold the code: the script's, else the working directory."""
    scripts = [Path(word) for word in sys.orig_argv[1:] if word.endswith(".py")]
    beside = [script.absolute().parent for script in scripts[:1] if script.exists()]
    return [*beside, *([here] if here else [])]


def _git(folder: Path) -> Git | None:
    """The revision in a folder. None if there is no repository, or no git."""
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return None
    try:
        # Porcelain v2 reports revision, branch and changes in one call. Optional locks would disturb the user's git.
        status = subprocess.run(
            ["git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--untracked-files=no"],
            cwd=folder, capture_output=True, text=True, timeout=2, check=True,
        ).stdout.splitlines()  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    heads = dict(line[2:].split(" ", 1) for line in status if line.startswith("# "))
    changed = any(not line.startswith("#") for line in status)
    return Git(heads.get("branch.oid", ""), heads.get("branch.head", ""), changed)
