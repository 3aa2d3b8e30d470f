"""The two sides of a comparison, as a user writes them: command lines of rlprof, or sessions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rlprof.analysis.comparison import Comparison
from rlprof.analysis.components import component_of
from rlprof.analysis.differences import changes
from rlprof.analysis.load import load_facts
from rlprof.compare.paired import ALPHA_PER_LOOK, Plan, compare_live
from rlprof.compare.separate_sessions import compare_separate, measure_session
from rlprof.errors import RlprofError
from rlprof.session.folder import DATABASE, find_database

_COMMAND = re.compile(r"""\s*([A-Za-z_]\w*=('[^']*'|"[^"]*"|[^\s'"])*\s+)*(run|train|rlprof)(\s|$)""")


def compare_arms(plan: Plan, run: Callable[[Plan], Comparison] | None = None) -> Comparison:
    """Compare two command lines with `run` (default: without progress), or two sides of recorded sessions."""
    sides = [[] if is_command(arm) else sessions_named(arm) for arm in (plan.a, plan.b)]
    if all(sides):
        if both := set(map(_database, sides[0])) & set(map(_database, sides[1])):
            raise RlprofError(f"The session {min(both)} is on both sides. Compare two different sessions.")
        facts = [[(str(path), load_facts(path)) for path in side] for side in sides]
        a, b = ([measure_session(one, name) for name, one in side] for side in facts)
        differences = changes(facts[0][0][1].session, facts[1][0][1].session)
        return replace(compare_separate(plan.a, plan.b, a, b, ALPHA_PER_LOOK, plan.per), changes=differences)
    if any(sides):
        raise RlprofError("A session cannot be compared with a command line. Give two sessions or two command lines.")
    return run(plan) if run is not None else compare_live(plan, component_of({}))


def is_command(arm: str) -> bool:
    """True if this is a command line of rlprof, with environment variables before it or not, and no file has that
    name."""
    return _COMMAND.match(arm) is not None and not Path(arm).exists()


def _database(session: Path) -> Path:
    """One path for each way to name a session."""
    return find_database(session).resolve()


def sessions_named(arm: str) -> list[Path]:
    """The sessions that an arm names: folders, files, `last`, folders of sessions, with commas between them."""
    found: list[Path] = []
    first = arm.split()[:1]
    if first and first[0].endswith(".py") and Path(first[0]).is_file():
        raise RlprofError(f"{first[0]} is a script and no session. To compare it, write 'run {arm.strip()}'.")
    for part in arm.split(","):
        path = Path(part)
        if part == "last":
            found.append(find_database(part))
        elif not part.strip():
            raise RlprofError(f"{arm!r} names no session. Give one, or a command line that begins with run or train.")
        elif path.is_dir() and not (path / DATABASE).exists():
            inside = sorted(folder for folder in path.iterdir() if (folder / DATABASE).exists())
            if not inside:
                raise RlprofError(f"{part} holds no sessions. Give a session or a folder of sessions.")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise RlprofError(f"There is no session {part}. A command line begins with run or train.")
    return found
