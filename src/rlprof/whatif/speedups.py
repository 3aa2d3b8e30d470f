"""The requested speedups: `env_step=2x`, checked against the operations of a session."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from rlprof.analysis.lane_work import Work
from rlprof.analysis.prediction import operations_of
from rlprof.errors import RlprofError
from rlprof.ledger.catalogue import WAITS

MOST = 20
"""Most operations that an error lists."""
_SPEED = re.compile(r"(?P<times>\d+\.?\d*|\.\d+)x|(?P<free>0|free)", re.IGNORECASE)


def read_speedups(words: Iterable[str], work: Work) -> dict[str, float]:
    """The part of its time that is left of each operation: 0.5 for `env_step=2x`."""
    saving = dict(map(_read, words))
    known = operations_of(work)
    for name in saving:
        if name in WAITS:
            raise RlprofError(f"{name} is a wait for other work and cannot be faster itself. Name what it waits for.")
        if name not in known:
            raise RlprofError(f"The session has no operation {name} in its iterations. {_instead(name, known)}")
    return saving


def _instead(name: str, known: Sequence[str]) -> str:
    """What the user may have meant."""
    if not known:
        return "It has no operations there at all."
    if near := get_close_matches(name, known):
        return f"Did you mean {', '.join(near)}?"
    more = f" and {len(known) - MOST} more" if len(known) > MOST else ""
    return f"Operations: {', '.join(known[:MOST])}{more}."


def _read(text: str) -> tuple[str, float]:
    name, _, speed = text.rpartition("=")
    found = _SPEED.fullmatch(speed)
    if not name or found is None or (found["times"] and not float(found["times"])):
        raise RlprofError(f"{text} is not a speedup. Write env_step=2x for twice as fast, or env_step=0 for free.")
    return name, 0.0 if found["free"] else 1 / float(found["times"])
