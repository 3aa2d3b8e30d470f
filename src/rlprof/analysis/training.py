"""Which part of the run is training? Every share is a share of it; what lies outside has a line of its own.

Outside is what a run does once, or what does not advance it:

- start-up, prefill, stops of the process, exports of traces: operations with an account of their own.
- warm-up: what the first iteration took longer than the others, if it stands out (compilation, caches, lazy imports).
- after the training: what the program did after its last step, update or iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from rlprof.ledger.catalogue import AFTER_TRAINING, BESIDE_TRAINING, EVALUATION, PREFILL
from rlprof.ledger.snapshot import Node, Snapshot
from rlprof.session.reader import IterationRow, Session

WARM_UP = "warm-up of the first iteration"

STANDS_OUT = 5.0
"""Times the median iteration. A first iteration takes twice as long as the others in many healthy trainings."""
LEAST_WARM_UP = 0.05
"""Least share of the training time. Less is not worth a line."""
FEWEST_ITERATIONS = 4
STANDS_OUT_AT_THE_END = 0.5
"""Fraction of the time after the last step or update that the last iteration must take longer than the others."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A part of the run that is not training."""

    name: str
    ns: int


@dataclass(frozen=True, slots=True)
class Training:
    """The training, and everything around it. Both together are the whole run."""

    snapshot: Snapshot
    """Its net nodes, accounts and wall time are about the training only."""
    outside: tuple[Outside, ...]
    """In the order in which it happens: start-up first, the end last."""

    def outside_ns(self, name: str) -> int:
        """Time of one part outside: 0 if there was none."""
        return sum(part.ns for part in self.outside if part.name == name)


def training_of(session: Session) -> Training:
    iterations = session.iterations()
    known = training_part(session.snapshot())
    totals = Counter({part.name: part.ns for part in known.outside})
    nodes, totals[WARM_UP] = _taken_from(
        known.snapshot.net_nodes, _warm_up(session, iterations, known.snapshot.wall_ns)
    )
    after, whole = _after(session, iterations, nodes, totals)
    nodes, taken = _taken_from(nodes, after)
    # What was done after the training is known roughly, but how long it took, exactly.
    nodes, more = _taken_from(nodes, _in_proportion({node.id: node.ledger_ns for node in nodes}, whole - taken))
    totals[AFTER_TRAINING] += taken + more
    return Training(known.snapshot.only(nodes), _in_order(totals))


def training_part(snapshot: Snapshot) -> Training:
    """What a snapshot alone shows: operations beside the training, with everything below them, lie outside."""
    beside_of: dict[int | None, str] = {}
    inside: list[Node] = []
    totals: Counter[str] = Counter()
    prefilling = 0
    for node in snapshot.net_nodes:  # parents come first
        name = beside_of.get(node.parent) or (node.operation if node.operation in BESIDE_TRAINING else None)
        if name:
            beside_of[node.id] = name
            totals[name] += node.ledger_ns
            prefilling += node.self_ns if name == PREFILL and snapshot.lanes[node.lane].on_driver else 0
        else:
            inside.append(node)
    # While the driver waits for its workers in the prefill, the time is in the workers' accounts.
    workers = {node.id: node.ledger_ns for node in inside if not snapshot.lanes[node.lane].on_driver}
    inside, taken = _taken_from(inside, _in_proportion(workers, prefilling - totals[PREFILL]))
    totals[PREFILL] += taken
    return Training(snapshot.only(inside), _in_order(totals))


def _in_order(totals: Counter[str]) -> tuple[Outside, ...]:
    ends = (WARM_UP, AFTER_TRAINING)
    names = [*(name for name in totals if name not in ends), *ends]
    return tuple(Outside(name, totals[name]) for name in names if totals[name])


def _warm_up(session: Session, iterations: Sequence[IterationRow], training_ns: int) -> dict[int, float]:
    """By node: how much longer it took in the first iteration than in a later one. Empty if nothing stands out."""
    first, later = iterations[:1], iterations[1:]
    count = sum(one.last - one.first + 1 for one in later)
    if count < FEWEST_ITERATIONS - 1 or first[0].first != first[0].last:
        return {}
    # Per step, if steps are counted: the first iteration may just be longer.
    counted = first[0].steps > 0 and all(one.steps > 0 for one in later)
    size = float(first[0].steps) if counted else 1.0
    usual = median(one.wall_ns / (one.steps if counted else one.last - one.first + 1) for one in later) * size
    excess = first[0].wall_ns - usual
    if first[0].wall_ns < STANDS_OUT * usual or excess < LEAST_WARM_UP * training_ns:
        return {}
    return _in_proportion(_longer(session, first, later), excess)


def _longer(session: Session, one: Sequence[IterationRow], others: Sequence[IterationRow]) -> dict[int, float]:
    """By node: how much longer it took in one iteration than in the others, per step if steps are counted."""
    size, sizes = _size(one, others), _size(others, one)
    usually = {gain.node: gain.ledger_ns * size / sizes for gain in session.gains(others[0], others[-1])}
    return {gain.node: gain.ledger_ns - usually.get(gain.node, 0.0) for gain in session.gains(one[0], one[-1])}


def _size(some: Sequence[IterationRow], others: Sequence[IterationRow]) -> float:
    """Steps, if all iterations have counted some; else the number of iterations."""
    counted = all(row.steps > 0 for row in (*some, *others))
    return sum(row.steps if counted else row.last - row.first + 1 for row in some)


def _after(
    session: Session, iterations: Sequence[IterationRow], nodes: Sequence[Node], known: Counter[str]
) -> tuple[dict[int, float], float]:
    """By node: its time after the end of the training, and how long that is. What was done in it is known only roughly:
    what lies outside of all iterations, and what the last iteration, if it is still open, took longer than the others.
    Without iterations: closing, evaluating, and time with no span open."""
    state = session.state
    training = sum(node.ledger_ns for node in nodes)
    if session.end is None and _is_inside(session, nodes):
        return {}, 0.0  # it was killed, or still runs: an operation that is open is no end of a training
    # A run that was paused may have trained last before that.
    if state is None or not known[AFTER_TRAINING] < state.after_ns < training:
        return {}, 0.0
    left = float(state.after_ns - known[AFTER_TRAINING])
    if not iterations:
        at_the_end = _at_the_end(nodes)
        closing = _in_proportion({node.id: node.ledger_ns for node in nodes if node.id in at_the_end}, left)
        return closing, sum(closing.values())
    gained = {gain.node: gain.ledger_ns for gain in session.gains(iterations[0], iterations[-1])}
    since = min(left, max(0, state.time - iterations[-1].end))
    outside = {node.id: node.ledger_ns - gained.get(node.id, 0) for node in nodes}
    found = Counter(_in_proportion(outside, since))
    if len(iterations) > 1:
        others = iterations[1:-1] or iterations[:-1]  # the first one is often slow
        longer = {id: ns for id, ns in _longer(session, iterations[-1:], others).items() if ns > 0}
        total = sum(longer.values())
        # If little stands out, the last iteration ends like the others: with an update after its last step.
        if total > STANDS_OUT_AT_THE_END * (left - since):
            for id, ns in longer.items():
                found[id] += ns * (left - since) / total  # type: ignore[assignment]
            since = left
    return dict(found), since


def _is_inside(session: Session, nodes: Sequence[Node]) -> bool:
    """True if the driver was inside an operation of the training at the last flush."""
    inside = {node.id for node in nodes if node.operation is not None}
    return any(lane.on_driver and lane.alive and lane.node in inside for lane in session.snapshot().lanes)


def _at_the_end(nodes: Sequence[Node]) -> set[int]:
    """Nodes of which some time may be after the training."""
    inside: set[int | None] = set()
    for node in nodes:  # parents come first
        if node.operation in (EVALUATION, "env_close") or node.parent in inside:
            inside.add(node.id)
    return {node.id for node in nodes if node.operation is None or node.id in inside}


def _in_proportion(weights: Mapping[int, float], ns: float) -> dict[int, float]:
    """At most this time, divided in proportion to the weights, none of which gets more than it has."""
    positive = {id: weight for id, weight in weights.items() if weight > 0}
    total = sum(positive.values())
    if not total or ns <= 0:
        return {}
    return {id: weight * min(1.0, ns / total) for id, weight in positive.items()}


def _taken_from(nodes: list[Node], ns_of: Mapping[int, float]) -> tuple[list[Node], int]:
    """The nodes without this time, and how much was taken."""
    if not ns_of:
        return nodes, 0
    taken = 0
    left = []
    for node in nodes:
        ns = min(max(0, node.ledger_ns), round(ns_of.get(node.id, 0.0)))
        taken += ns
        left.append(_shortened(node, ns) if ns else node)
    return left, taken


def _shortened(node: Node, ns: int) -> Node:
    own = min(ns, node.self_ns)
    keep = 1 - own / node.self_ns if node.self_ns else 1.0
    return replace(
        node,
        ledger_ns=node.ledger_ns - ns,
        self_ns=node.self_ns - own,
        cpu_ns=None if node.cpu_ns is None else round(node.cpu_ns * keep),
        waited_ns=round(node.waited_ns * keep),
        wall_ns=max(0, node.wall_ns - own),
    )
