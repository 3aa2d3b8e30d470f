"""Whose code a file is: the user's, a library's or rlprof's own."""

from __future__ import annotations

import os
from functools import lru_cache

USER, LIBRARY, OWN = "user", "library", "own"

_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))
_GENERATED = ("<frozen ", "<eval_with_key>", "<__array_function__", "<attrs generated", "<decorator-gen")
"""Names of code that Python and libraries make. Other names in angle brackets are the user's: `<string>`, `<stdin>`,
and the cells of a notebook."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_WORKLOADS = os.path.join(_PACKAGE, "workloads") + os.sep


@lru_cache(maxsize=4096)
def owner_of(file: str) -> str:
    """USER, LIBRARY or OWN, by the `co_filename` of the code. An editable install is the user's."""
    if file.startswith(_PACKAGE):
        return USER if file.startswith(_WORKLOADS) else OWN
    if file.startswith((_STANDARD, *_GENERATED)) or any(folder in file for folder in _INSTALLED):
        return LIBRARY
    return USER
