"""What each lane does at the moment of a reading, how busy it is, and who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence

from rlprof.analysis.facts import UNENDED
from rlprof.ledger.rows import LaneRow
from rlprof.live.frame import LaneNow
from rlprof.live.reading import Reading

MOST_LANES = 1_000
MOST_NAMES = 8


def lanes_now(reading: Reading, late: bool = False) -> tuple[tuple[LaneNow, ...], int]:
    """The lanes, and how many are left out: those that have ended, as long as the run goes on, and those beyond the
    limit. If the reading is late, nobody knows since when lanes are inside of an operation."""
    goes_on = reading.ended in UNENDED
    rows = [row for row in reading.lanes if row.on_driver or row.alive or not goes_on]
    main = next((row.id for row in rows if row.on_driver and row.kind == "thread"), None)
    rows.sort(key=lambda row: (row.id != main, not row.on_driver, row.id))
    shown = rows[:MOST_LANES]
    working = [row.name for row in rows if not row.on_driver and goes_on and _works(row, reading)]
    return tuple(_lane(row, reading, goes_on, late, working) for row in shown), len(reading.lanes) - len(shown)


def _works(row: LaneRow, reading: Reading) -> bool:
    at = reading.places.get(row.node)
    return bool(row.alive and not row.waits and at and at.path)


def _lane(row: LaneRow, reading: Reading, goes_on: bool, late: bool, working: Sequence[str]) -> LaneNow:
    at = reading.places.get(row.node)
    now = reading.state.time if reading.state is not None else 0
    active = goes_on and bool(row.alive)
    busy = (reading.window.busy_ns or {}).get(row.id, 0)
    return LaneNow(
        name=row.name,
        kind=row.kind,
        on_driver=bool(row.on_driver),
        alive=active,
        doing=at.path if active and at is not None else (),
        since_s=max(0, now - row.since) / 1e9 if active and row.since and not late else None,
        waits=active and bool(row.waits),
        waits_for=tuple(working[:MOST_NAMES]) if active and row.waits and row.on_driver else (),
        busy=min(100.0, 100 * busy / reading.gained_ns) if reading.gained_ns else None,
    )
