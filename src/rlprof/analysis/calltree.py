"""The call trees of all lanes merged into one: the same path of operations on several lanes is one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rlprof.ledger.snapshot import Measures, Node


@dataclass(slots=True)
class Place:
    """One path of operations, over all lanes. Subtree figures include the places below it."""

    depth: int = -1
    nodes: list[Node] = field(default_factory=list)
    children: list[Place] = field(default_factory=list)
    """Largest ledger time first."""
    self_ns: int = 0
    ledger_ns: int = 0
    overlapped_ns: int = 0
    subtree_wall_ns: int = 0
    subtree_ledger_ns: int = 0
    subtree_cpu_ns: int | None = None

    @property
    def operation(self) -> str:
        return self.nodes[0].operation or ""

    @property
    def category(self) -> str:
        return self.nodes[0].category

    @property
    def cpu_ns(self) -> int | None:
        return cpu_of(self.nodes)

    def durations(self) -> Measures:
        """Number, mean and quantiles of the spans that ended at this place."""
        called = [node for node in self.nodes if node.calls]
        if len(called) == 1:
            return called[0]
        histogram: Counter[int] = Counter()
        for node in called:
            histogram.update(node.histogram)
        return Measures(
            calls=sum(node.calls for node in called),
            busy_ns=sum(node.busy_ns for node in called),
            min_ns=min((node.min_ns for node in called), default=0),
            max_ns=max((node.max_ns for node in called), default=0),
            histogram=histogram,
        )


def cpu_of(nodes: Iterable[Node]) -> int | None:
    """Thread CPU time of the nodes; None if it cannot be measured."""
    # rlprof's cost may still be in a node's CPU time but not in its self time.
    known = [min(node.cpu_ns, node.self_ns) for node in nodes if node.cpu_ns is not None]
    return sum(known) if known else None


def merge(nodes: Iterable[Node]) -> Place:
    """The root of the merged tree, which has no operation. Nodes come parents first, as in a snapshot."""
    root = Place()
    places: list[Place] = []
    place_of: dict[int, Place] = {}
    known: dict[tuple[int, str], Place] = {}
    for node in nodes:
        if node.operation is None or node.parent is None:
            place_of[node.id] = root
            continue
        # A span that was opened in this very nanosecond is not among the nodes, but its children may be.
        parent = place_of.get(node.parent, root)
        place = known.get((id(parent), node.operation))
        if place is None:
            place = known[id(parent), node.operation] = Place(parent.depth + 1)
            parent.children.append(place)
            places.append(place)
        place.nodes.append(node)
        place.self_ns += node.self_ns
        place.ledger_ns += node.ledger_ns
        place.overlapped_ns += node.overlapped_ns
        place_of[node.id] = place
    for place in reversed(places):  # children before parents, and no recursion: a tree may be deeper than the stack
        below = place.children
        _sort(below)
        place.subtree_wall_ns = place.self_ns + sum(child.subtree_wall_ns for child in below)
        place.subtree_ledger_ns = place.ledger_ns + sum(child.subtree_ledger_ns for child in below)
        if (cpu := place.cpu_ns) is not None:
            place.subtree_cpu_ns = cpu + sum(child.subtree_cpu_ns or 0 for child in below)
    _sort(root.children)
    return root


def _sort(places: list[Place]) -> None:
    places.sort(key=lambda place: (-place.subtree_ledger_ns, -place.subtree_wall_ns, place.operation))
