"""The game server of the workload battle, installed once per machine."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from components import missing

DATA = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlprof-tests"
"""Used instead of the user's data folder."""


def installed_server() -> Path:
    """The folder of the server. The first process installs it while the others wait."""
    from rlprof.workloads.battle.install import install

    for program in ("node", "npm"):
        if shutil.which(program) is None:
            missing(program)
    DATA.mkdir(parents=True, exist_ok=True)
    with (DATA / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install(DATA / "rlprof" / "pokemon-showdown")
    return DATA / "rlprof" / "pokemon-showdown"
