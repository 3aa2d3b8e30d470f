"""Where a command's result goes: to the terminal, or to a file that is there whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rlprof.errors import RlprofError


def write(text: str, output: str | None) -> None:
    """To a file, or to the standard output."""
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_file(Path(output), text.encode("utf-8", "replace"))


def write_file(path: Path, data: bytes) -> None:
    """Replace a file in one step. A pipe or a device is written to as it is."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise RlprofError(f"{path} cannot be written: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
