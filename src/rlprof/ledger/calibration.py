"""Measures the cost of a span on this machine, in this process, now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlprof.ledger.snapshot import SpanCost

_BATCHES = 15
_SPANS = 200
_STEPS = 30


def measure_span_cost(new_ledger: Callable[[], Any]) -> SpanCost:
    """Time empty spans on ledgers made for it, against an empty loop. Takes about a millisecond with the C core."""
    ledger = new_ledger()
    profile = ledger.recorder
    now = ledger.now
    ledger.start()
    inside = []
    total = []
    for _ in range(_BATCHES):
        ledger.reset()
        begin = now()
        for _ in range(_SPANS):
            with profile("calibration"):
                pass
        middle = now()
        for _ in range(_SPANS):
            pass
        end = now()
        total.append(((middle - begin) - (end - middle)) / _SPANS)
        inside.append(_mean_duration(ledger))
    ledger.stop()
    # The median, because an interrupt makes a batch expensive.
    cost = _median(total)
    spread = sorted(total)[_BATCHES // 5 : -_BATCHES // 5]
    return SpanCost(
        inside_ns=min(cost, _median(inside)),
        outside_ns=max(0.0, cost - _median(inside)),
        uncertainty_ns=(spread[-1] - spread[0]) / 2,
    )


class _Idle:
    """A callback that belongs to no task."""

    _callback = None


def measure_step_cost(new_ledger: Callable[[], Any]) -> int:
    """Cost of following one callback of an event loop, in ns, besides the part that the ledger times."""
    ledger = new_ledger()
    now = ledger.now
    handle = _Idle()
    run = _do_nothing
    follow = ledger.follow(run)
    ledger.start()
    costs: list[float] = []
    for _ in range(_BATCHES):
        ledger.reset()
        begin = now()
        for _ in range(_STEPS):
            follow(handle)
        middle = now()
        for _ in range(_STEPS):
            run(handle)
        end = now()
        timed = sum(row.cost for row in ledger.raw()["nodes"])
        costs.append(((middle - begin) - (end - middle) - timed) / _STEPS)
    ledger.stop()
    return max(0, round(_median(costs)))


def _median(values: list[float]) -> float:
    """Median of an odd number of values. The statistics module is slow to import, and rlprof must start at once."""
    return sorted(values)[len(values) // 2]


def _do_nothing(_handle: Any) -> None:
    pass


def _mean_duration(ledger: Any) -> float:
    calls = busy = 0
    for row in ledger.raw()["nodes"]:
        calls += row.calls
        busy += row.busy
    return busy / calls if calls else 0.0
