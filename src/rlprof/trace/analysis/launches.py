"""Which call on the host launched which work of a device."""

from __future__ import annotations

import numpy as np

from rlprof.trace.columns import Rows, Trace
from rlprof.trace.kinds import Kind


def launches_of(trace: Trace, rows: Rows) -> Rows:
    """The calls on the host that launched these rows, by correlation; -1 if the trace has no such call."""
    calls = trace.rows(Kind.RUNTIME)
    numbers = trace.arg("correlation").at(calls)
    calls, numbers = calls[numbers > 0], numbers[numbers > 0]
    order = np.argsort(numbers, kind="stable")
    calls, numbers = calls[order], numbers[order]
    wanted = trace.arg("correlation").at(rows)
    found = np.full(len(rows), -1, np.int64)
    if len(numbers):
        places = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        hit = (numbers[places] == wanted) & (wanted > 0)
        found[hit] = calls[places[hit]]
    return found
