"""The warning that a compiled module is missing and its Python twin is used."""

from __future__ import annotations

import importlib
import os
import sys
import warnings

from rlprof.ledger.hooks import RlprofWarning

REQUIRED = "RLPROF_REQUIRE_CORE"
_warned: set[str] = set()


def is_free_threaded(abiflags: str) -> bool:
    """True if a Python with these `sys.abiflags` has no interpreter lock, which the C modules rely on."""
    return "t" in abiflags


def why_missing(module: str) -> str | None:
    """Why a compiled module of rlprof cannot be used here, and what helps; None if it can."""
    if is_free_threaded(getattr(sys, "abiflags", "")):
        return "it needs the interpreter's lock, which free-threaded builds of Python do without; use a standard build"
    try:
        importlib.import_module(module)
    except ModuleNotFoundError:
        return "it was not compiled when rlprof was installed; install a C compiler and rlprof again"
    except ImportError as error:
        return str(error)
    return None


def say_missing(module: str, what: str, instead: str) -> None:
    """Warn, once per process, that the Python twin is used. With RLPROF_REQUIRE_CORE=1, raise RuntimeError."""
    if module in _warned:
        return
    reason = why_missing(module)
    if reason is None:
        return
    message = f"{what} cannot be used: {reason}"
    if os.environ.get(REQUIRED, "") not in ("", "0"):
        raise RuntimeError(f"{message} ({REQUIRED} is set)")
    _warned.add(module)
    try:
        warnings.warn(f"rlprof: {message}. {instead}", RlprofWarning, stacklevel=3)
    except RlprofWarning as warning:  # made an error: the training goes on all the same
        sys.stderr.write(f"{warning}\n")
