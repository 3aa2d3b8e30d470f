"""What the user chose to see: the order of operations, the filter, the selected row, an iteration of the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.ledger.catalogue import PHASES
from rlprof.live.frame import Frame, Part, PastIteration
from rlprof.live.stacks_text import Stacks

ORDERS = ("tree", "now", "whole", "name")
"""The call tree; or a list of operations with their own times, sorted."""
SMALL = 0.05
"""Percent of the training time. The tree leaves out smaller rows, until the cursor goes below the last row."""

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class View:
    order: str = "tree"
    filter: str = ""
    paused: bool = False
    selected: Key | None = None
    """Path of the selected row; None if no row is."""
    everything: bool = False
    """Show the small rows of the tree, too."""
    past: PastIteration | None = None
    """The iteration that is shown instead of the present."""
    back: int = 0
    """How many iterations ended after it."""
    message: str = ""
    """The state or the result of an action, shown below the dashboard."""
    is_error: bool = False
    stacks: Stacks | None = None
    """The Python stacks of a training that is stuck, once they are known."""
    runs_training: bool = False
    """The training is a child of this process: `rlprof run --top`."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of operations. Shares are percent of the time that is shown."""

    key: Key
    operation: str
    category: str
    depth: int
    is_phase: bool
    now: float | None
    whole: float | None
    call_ns: float | None
    """Mean duration of a call."""
    ns: float | None = None
    """Training time."""


def rows_of(frame: Frame, view: View) -> list[Row]:
    """All rows in the chosen order that match the filter."""
    if view.past is not None:
        rows = _past_rows(frame, view.past)
    elif is_tree(view):
        return [
            Row(part.path or (part.operation,), part.operation, part.category, part.depth, part.is_phase, part.now,
                part.share, part.mean_ns, part.ns)
            for part in frame.parts
        ]  # fmt: skip
    else:
        rows = _list_of_operations(frame)
    wanted = view.filter.lower()
    rows = [row for row in rows if wanted in row.operation.lower()]
    if view.order == "name":
        return sorted(rows, key=lambda row: row.operation)
    if view.order == "whole":
        return sorted(rows, key=lambda row: -(row.whole or 0.0))
    return sorted(rows, key=lambda row: -(row.now if row.now is not None else row.whole or 0.0))


def _list_of_operations(frame: Frame) -> list[Row]:
    """One row per operation with its own time at all of its places."""
    places: dict[str, list[tuple[float, float | None, int, float | None]]] = {}
    first: dict[str, Part] = {}
    for part in frame.parts:
        first.setdefault(part.operation, part)
        places.setdefault(part.operation, []).append((part.own_share, part.own_now, part.calls, part.mean_ns))
    rows = []
    for name, part in first.items():
        found = places[name]
        known = [now for _, now, _, _ in found if now is not None]
        timed = [(calls, mean) for _, _, calls, mean in found if mean is not None and calls > 0]
        calls = sum(calls for calls, _ in timed)
        mean_ns = sum(calls * mean for calls, mean in timed) / calls if calls else None
        whole = sum(share for share, _, _, _ in found)
        now = sum(known) if known else None
        ns = whole / 100 * frame.training_s * 1e9 if frame.training_s is not None else None
        rows.append(Row((name,), name, part.category, 0, part.is_phase, now, whole, mean_ns, ns))
    return rows


def _past_rows(frame: Frame, past: PastIteration) -> list[Row]:
    """The operations of one iteration, beside their own share of the whole run."""
    whole: dict[str, float] = {}
    for part in frame.parts:
        whole[part.operation] = whole.get(part.operation, 0.0) + part.own_share
    return [
        Row((name,), name, category, 0, name in PHASES, 100 * ns / past.wall_ns if past.wall_ns else None,
            whole.get(name), ns / calls if calls else None)
        for name, category, ns, calls in past.operations
    ]  # fmt: skip


def shown_rows(rows: Sequence[Row], view: View, most: int) -> tuple[list[Row], int]:
    """At most `most` rows around the selected one, and how many more there are. The tree keeps its largest rows, with
    all that contain them."""
    kept = list(rows)
    if is_tree(view) and not view.everything:
        kept = [row for row in kept if max(row.now or 0.0, row.whole or 0.0) >= SMALL]
        if len(kept) > most:
            ranked = sorted(kept, key=lambda row: (-max(row.now or 0.0, row.whole or 0.0), row.depth))[:most]
            largest = {id(row) for row in ranked}
            kept = [row for row in kept if id(row) in largest]
    start = 0
    place = next((place for place, row in enumerate(kept) if row.key == view.selected), None)
    if place is not None and place >= most:
        start = place - most + 1
    kept = kept[start : start + most]
    return kept, len(rows) - len(kept)


def moved(frame: Frame, view: View, by: int, visible: Sequence[Key]) -> tuple[Key | None, bool]:
    """The row that is selected after the cursor moved, and whether small rows are shown from now on."""
    rows = [row.key for row in rows_of(frame, view)]
    is_cut = is_tree(view) and not view.everything
    keys = list(visible) if is_cut else rows
    if not keys:
        return None, view.everything
    if view.selected not in keys:
        return keys[0 if by > 0 else -1], view.everything
    place = keys.index(view.selected) + by
    if place < 0:
        return None, False  # above the first row: nothing is selected
    if place >= len(keys) and is_cut and len(rows) > len(keys):
        return rows[min(rows.index(view.selected) + 1, len(rows) - 1)], True  # the small rows follow
    return keys[min(place, len(keys) - 1)], view.everything


def is_tree(view: View) -> bool:
    """True if the rows are those of the call tree, and not a list of operations."""
    return view.order == "tree" and not view.filter and view.past is None


def operation_of(view: View) -> str | None:
    """Name of the selected operation; None if none is selected, or if it is not an operation."""
    name = view.selected[-1] if view.selected else None
    return None if name in (UNATTRIBUTED, "rlprof") else name
