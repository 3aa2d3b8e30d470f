"""The traces that a user names: files, folders, sessions, patterns."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from rlprof.errors import RlprofError
from rlprof.session.folder import DATABASE, find_database

_ENDINGS = (".json", ".json.gz")


def traces_named(given: Iterable[str]) -> list[Path]:
    """Files; the traces of a folder, of a session or of `last`; and patterns that the shell did not resolve."""
    return [path for name in given for path in _named(name)]


def _named(name: str) -> list[Path]:
    path = Path(name)
    if name == "last":
        path = find_database(name).parent
    if path.is_dir():
        folder = path / "traces" if (path / DATABASE).exists() else path
        found = sorted(file for file in folder.glob("*") if file.name.endswith(_ENDINGS))
        if not found:
            raise RlprofError(f"{folder} has no traces (*.json or *.json.gz).")
        return found
    if not path.exists() and glob.has_magic(name):
        found = sorted(map(Path, glob.glob(name)))
        if not found:
            raise RlprofError(f"No file matches {name}.")
        return found
    return [path]
