"""Modules of the program that share a name with a module that rlprof has imported.

A script with a `platform.py` beside it means that file when it imports platform. rlprof runs first and has imported
Python's own platform, so it removes that from sys.modules again. Modules that use it already keep it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection


def remove_shadowed_modules(before: Collection[str]) -> None:
    """Remove the modules imported since `before` whose names are in the program's own folder too."""
    folder = program_folder()
    ours = {name.partition(".")[0] for name in sys.modules.keys() - set(before)} - set(before) - {"rlprof"}
    if folder is None:
        return
    try:
        theirs = {name.partition(".")[0] for name in os.listdir(folder)}
    except OSError:
        return  # an archive, or not readable
    for shadowed in ours & theirs:
        for name in list(sys.modules):
            if name == shadowed or name.startswith(f"{shadowed}."):
                del sys.modules[name]


def program_folder() -> str | None:
    """The future first entry of sys.path. Python adds it only after sitecustomize has run."""
    if getattr(sys.flags, "safe_path", False) or not sys.argv:
        return None
    script = sys.argv[0]
    if script in ("", "-", "-c", "-m"):
        return os.curdir
    return script if os.path.isdir(script) else os.path.dirname(os.path.realpath(script))
