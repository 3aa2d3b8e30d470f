"""The driver's waiting that went to other processes: its amount, and how it is given back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlprof.ledger.rows import NodeRow


def apportion(total: int, parts: Sequence[int]) -> list[int]:
    """Divide a total in proportion to the parts, in whole numbers that sum to it: the largest remainders round up."""
    whole = sum(parts)
    if whole == 0:
        return [0] * len(parts)
    shares = [total * part // whole for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda i: -(total * parts[i] % whole))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares


def given_away(raw: dict[str, Any]) -> int:
    """Wall time that the accounts of this process lack, because other processes have received it."""
    return int(raw["wall"] - sum(row.ledger for row in raw["nodes"]))


def give_back(raw: dict[str, Any], ns: int) -> list[NodeRow]:
    """The rows with this much time returned to the waits that gave it away: no process is known to have received it."""
    rows: list[NodeRow] = raw["nodes"]
    if ns <= 0:
        return rows
    driver = {lane.id for lane in raw["lanes"] if lane.on_driver}
    gave = [max(0, row.self - row.ledger) if row.waited and row.lane in driver else 0 for row in rows]
    if not any(gave):
        gave = [int(row.operation < 0 and row.lane in driver) for row in rows]
    returned = apportion(ns, gave)
    return [row._replace(ledger=row.ledger + back) if back else row for row, back in zip(rows, returned)]
