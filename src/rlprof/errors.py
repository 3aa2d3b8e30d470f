"""Errors that a user can act on. The command line prints them as one sentence and exits with code 2."""

from __future__ import annotations


class RlprofError(Exception):
    """One sentence: what is wrong, where, and what to do."""


class UnreadableError(RlprofError):
    """A session, report or trace cannot be read."""


class MissingLibraryError(RlprofError):
    """A part of rlprof needs a library that is not installed.

    extra: the extra of rlprof that installs the library (default: none does).
    """

    def __init__(self, what: str, library: str, extra: str = "") -> None:
        package = f"'rlprof[{extra}]'" if extra else library
        super().__init__(f"{what} needs {library}, which is not installed; install it with pip install {package}")
