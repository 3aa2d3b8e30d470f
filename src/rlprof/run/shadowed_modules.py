"""Modules of the program that have the name of one that rlprof has imported.

A script with a `platform.py` beside it means that one when it imports platform. rlprof was there first, with Python's
own, so it takes that out of the way again; what uses it already keeps it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection


def make_room(before: Collection[str]) -> None:
    """Forget the modules imported since `before` that the program's own folder has too."""
    folder = program_folder()
    ours = {name.partition(".")[0] for name in sys.modules.keys() - set(before)} - set(before) - {"rlprof"}
    if folder is None:
        return
    try:
        theirs = {name.partition(".")[0] for name in os.listdir(folder)}
    except OSError:
        return  # an archive, or not to be read
    for shadowed in ours & theirs:
        for name in list(sys.modules):
            if name == shadowed or name.startswith(f"{shadowed}."):
                del sys.modules[name]


def program_folder() -> str | None:
    """What will be the first of sys.path; Python puts it there only after this."""
    if getattr(sys.flags, "safe_path", False) or not sys.argv:
        return None
    script = sys.argv[0]
    if script in ("", "-", "-c", "-m"):
        return os.curdir
    return script if os.path.isdir(script) else os.path.dirname(os.path.realpath(script))
