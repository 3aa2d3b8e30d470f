"""Where the host waits for a device, and which code makes it wait."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from rlprof.trace.analysis.host import WAITS
from rlprof.trace.analysis.nesting import Nesting, nest
from rlprof.trace.columns import Trace
from rlprof.trace.kinds import STEP_PREFIX, Kind

NOT_THE_USERS = re.compile(r"^(torch/|.*/torch/|<built-in|<frozen|nn\.Module|builtins)|site-packages/(torch|numpy)/")
"""Python functions of libraries. A synchronization in them counts for the user's function that called them."""


@dataclass(frozen=True, slots=True)
class Sync:
    """All calls of one kind from one place."""

    call: str
    """Call of the CUDA or HIP runtime."""
    operator: str
    """The outermost operator around the call; empty if there is none."""
    function: str
    """The innermost Python function outside of libraries, if stacks were recorded."""
    phase: str
    """The innermost annotation."""
    calls: int
    waited: int
    """Time in ns."""


def syncs_of(trace: Trace) -> list[Sync]:
    """Synchronizations of all threads, longest wait first."""
    rows = trace.matching(trace.rows(Kind.RUNTIME), WAITS)
    if not len(rows):
        return []
    around = trace.rows(Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON)
    around = around[np.isin(trace.lanes(around), trace.lanes(rows))]
    found = nest(trace, np.concatenate([around, rows]))
    place = np.full(len(trace.kind), -1, np.int64)
    place[found.rows] = np.arange(len(found.rows))
    totals: defaultdict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        total = totals[(trace.texts.name(int(trace.name[row])), *_callers(trace, found, int(place[row])))]
        total[0] += 1
        total[1] += int(trace.duration[row])
    syncs = [Sync(*key, calls, waited) for key, (calls, waited) in totals.items()]
    return sorted(syncs, key=lambda sync: (-sync.waited, sync.call, sync.operator, sync.function, sync.phase))


def _callers(trace: Trace, found: Nesting, place: int) -> tuple[str, str, str]:
    """The outermost operator, the user's innermost function and the innermost annotation around a call."""
    operator = function = phase = ""
    place = int(found.parent[place])
    while place >= 0 and not phase:
        row = found.rows[place]
        kind, name = trace.kind[row], trace.texts.name(int(trace.name[row]))
        if kind == Kind.OPERATOR and not function:
            operator = name
        elif kind == Kind.PYTHON and not function and not NOT_THE_USERS.search(name):
            function = name
        elif kind == Kind.ANNOTATION and not name.startswith(STEP_PREFIX):
            phase = name
        place = int(found.parent[place])
    return operator, function, phase
