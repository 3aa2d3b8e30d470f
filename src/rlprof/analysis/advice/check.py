"""The command that shows whether a change helped, with the command line of the run."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePath

from rlprof.analysis.facts import Facts

_CHANGED = "_changed"
ENOUGH_ITERATIONS = 30
"""What `rlprof compare` needs by default for one pair, with its warm-up. For a shorter training it needs an option."""


def compare_with_change(facts: Facts) -> str:
    """Compare the program with a changed copy of it, in interleaved pairs."""
    before = _arm(facts.session.command)
    if before is None:
        return "Run the program again with the change, and look at `rlprof report` of both sessions."
    script = before[1]
    path = PurePath(script)
    changed = [before[0], str(path.with_name(f"{path.stem}{_CHANGED}{path.suffix}")), *before[2:]]
    iterations = facts.progress.iterations
    few = f" --iterations {max(1, iterations // 2)}" if 0 < iterations < ENOUGH_ITERATIONS else ""
    return f"rlprof compare {_quoted(before)} {_quoted(changed)}{few}"


def changed_copy(check: str) -> str | None:
    """The script that the command expects to be a changed copy; None if it needs no copy."""
    found = re.search(rf"[^\s'\"]*{_CHANGED}\.\w+", check)
    return found[0] if found else None


def compare_with_options(facts: Facts, *options: str) -> str:
    """Compare the program with itself under other options of its own."""
    before = _arm(facts.session.command)
    if before is None:
        return f"Run the program again with {' '.join(options)}, and look at `rlprof report` of both sessions."
    return f"rlprof compare {_quoted(before)} {_quoted([*before, *options])}"


def compare_with_variable(facts: Facts, setting: str) -> str:
    """Compare the program with itself under another environment variable: `OMP_NUM_THREADS=1`."""
    before = _arm(facts.session.command)
    if before is None:
        return f"Run the program again with {setting}, and look at `rlprof report` of both sessions."
    return f"rlprof compare {_quoted(before)} {shlex.quote(f'{setting} {shlex.join(before)}')}"


def report_again(facts: Facts) -> str:
    """Run the program again, and look at its memory."""
    before = _arm(facts.session.command)
    if before is None:
        return "Run the program again with the change: `rlprof report --full` shows whether memory levels off."
    return f"rlprof {shlex.join(before)} && rlprof report --full"


def _arm(command: list[str] | tuple[str, ...]) -> list[str] | None:
    """The run as `rlprof compare` takes it: `run train.py --seed 1`. None if it was not started in such a way."""
    words = list(command)
    if words and PurePath(words[0]).name.startswith("python"):
        words = words[1:]
    if words and PurePath(words[0]).name == "rlprof":
        words = words[1:]
        if words[:1] == ["run"]:
            words = words[1:]
        elif words[:1] == ["train"] and len(words) > 1:
            return words
    if words and words[0].endswith(".py"):
        return ["run", *words]
    return None


def _quoted(words: list[str]) -> str:
    return shlex.quote(shlex.join(words))
