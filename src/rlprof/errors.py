"""What the library raises when a user must do something. The command line makes it one sentence and exit code 2."""

from __future__ import annotations


class RlprofError(Exception):
    """One sentence: what is wrong, where, what to do."""


class UnreadableError(RlprofError):
    """A session, report or trace that cannot be read."""


class MissingLibraryError(RlprofError):
    """A part of rlprof whose library is not installed."""

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(f"{what} needs {library}, which is not installed; pip install 'rlprof[{extra}]' brings it")
