"""Ctrl-C while the command `rlprof` starts ends it at once and silently, as it ends a command that is not in Python.

Python would show a traceback of rlprof's imports. So rlprof's first import lets the system end the process. Commands
that end in an orderly way switch Python's own handling on again.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the module signal makes enums, which takes a while
import os
import sys

_silent = False


def be_silent_while_starting() -> None:
    """Does nothing in a program that imports rlprof, or if SIGINT is ignored."""
    global _silent
    words = sys.orig_argv
    own = os.path.basename(sys.argv[0]) == "rlprof" if sys.argv else False
    if not own and sys.argv[:1] == ["-m"]:
        own = "-m" in words[:-1] and words[words.index("-m") + 1] == "rlprof"
    if own and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        _silent = True


def raise_again() -> None:
    """From now on, Ctrl-C is a KeyboardInterrupt."""
    global _silent
    if _silent:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        _silent = False
