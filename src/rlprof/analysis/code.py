"""Which lines of the user's code does the time come from? Estimated from samples of the Python stack."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.training import Training
from rlprof.ledger.snapshot import Node
from rlprof.session.reader import Session
from rlprof.session.stacks import Frame, Stack

MOST_LINES = 20
"""Of one operation. The rest have hardly any samples."""
FEW_LINES = 3
LEAST_SHARE = 0.01
"""Of an operation's own time. Smaller lines are not listed."""
MOST_GROWING = 60
"""Lines during which memory rose."""
STARTS_PROCESS = "BaseProcess._bootstrap"
"""Function of multiprocessing that a worker process begins with."""
PATH = " > "
MOST_CALLS = 400
"""Entries of the flame graph. Smaller ones are left out."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the user's code. Calls into libraries count for the line that makes them."""

    file: str
    """As in the session: relative to the working directory or the script's folder, if it is inside one of them."""
    line: int
    function: str
    source: str
    """Text of the statement without indentation; empty if the file could not be read."""
    ns: float
    """Estimated wall time."""
    share: float
    """Fraction of the own time of the operation, or of the training time: see where it is used."""
    below: tuple[str, ...]
    """What the line calls in libraries, hottest path, outermost first: `module:function`."""
    direct: float = 0.0
    """Fraction of its time in Python's own instructions or in functions of C that it calls itself."""
    loop: bool = False
    """True if it is inside a loop of its function."""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Call:
    """One user function in the flame graph of an operation."""

    path: tuple[str, ...]
    """Functions, outermost first, as `file:function`."""
    ns: float
    """Estimated wall time, without what it calls in user code."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A line during which the memory of the process rose, over the whole training."""

    operation: str
    line: Line
    bytes: int
    density: float = 1.0
    """Times as many bytes per second as over all lines. About 1 where memory rises elsewhere, between two samples."""


@dataclass(frozen=True, slots=True)
class Code:
    sampled_ns: int
    """Training time that the samples cover. 0 if the stacks were not sampled."""
    lines: dict[str, tuple[Line, ...]]
    """By operation, or `unattributed`: the lines that its own time comes from, hottest first. Shares are fractions of
    its own time."""
    calls: dict[str, tuple[Call, ...]]
    """By operation: the flame graph of its own time."""
    growth: tuple[Growth, ...]
    """Lines in which memory rose, largest first."""
    inner_loops: dict[str, tuple[Line, ...]] = field(default_factory=dict)
    """By operation, with what it calls: the lines in the innermost loop of the user's code around it, hottest first.
    They say how often something is called."""
    outer_loops: dict[str, tuple[Line, ...]] = field(default_factory=dict)
    """The same for the outermost loop, which is usually the training loop."""
    on_driver: dict[str, tuple[Line, ...]] = field(default_factory=dict)
    """As `lines`, for operations that run on the driver and elsewhere: what the driver does in them."""
    elsewhere: dict[str, tuple[Line, ...]] = field(default_factory=dict)
    """The same for worker processes and other threads."""
    in_workers: tuple[Line, ...] = ()
    """Lines of worker processes outside of all operations, hottest first. Their time is sampled, and shares are
    fractions of all that was sampled in worker processes."""
    places: dict[str, tuple[Line, ...]] = field(default_factory=dict)
    """By path, such as `rollout > env_step`, for operations that the driver runs at several places of the call tree:
    the lines that their own time comes from there."""
    imports: tuple[Line, ...] = ()
    """Lines during which modules were imported, hottest first. Shares are fractions of the sampled time."""

    def within(self, operation: str, on_driver: bool | None = None) -> tuple[Line, ...]:
        """Lines of an operation, hottest first. on_driver: True or False for the driver's or all other lanes only."""
        side = {} if on_driver is None else self.on_driver if on_driver else self.elsewhere
        return side.get(operation, self.lines.get(operation, ()))

    def at(self, path: Sequence[str], on_driver: bool) -> tuple[Line, ...]:
        """Lines of the operation at the end of this path in the call tree, hottest first."""
        found = self.places.get(PATH.join(path)) if on_driver and self.places else None
        return self.within(path[-1], on_driver) if found is None else found

    def ns_in(self, operation: str, place: Line) -> float:
        """Estimated time of a line in the own time of an operation."""
        return sum(line.ns for line in self.within(operation) if line.where == place.where)

    def main_operation(self, place: Line) -> str | None:
        """The operation, or `unattributed`, in which a line takes longest. None if the line was not sampled."""
        longest = max(self.lines, key=lambda name: self.ns_in(name, place), default=None)
        return longest if longest is not None and self.ns_in(longest, place) else None


def code_of(session: Session, training: Training) -> Code:
    nodes = {node.id: node for node in training.snapshot.net_nodes}
    stacks: defaultdict[int, list[Stack]] = defaultdict(list)
    for stack in session.stacks():
        if stack.node in nodes:
            stacks[stack.node].append(stack)
    own: defaultdict[str, list[_Sampled]] = defaultdict(list)
    sides: dict[bool, defaultdict[str, list[_Sampled]]] = {True: defaultdict(list), False: defaultdict(list)}
    subtree: defaultdict[str, list[_Sampled]] = defaultdict(list)
    places: defaultdict[str, dict[str, list[_Sampled]]] = defaultdict(dict)
    workers: list[tuple[Node, Stack]] = []
    for id, found in stacks.items():
        if training.snapshot.lanes[nodes[id].lane].kind == "process":
            workers += ((nodes[id], stack) for stack in found)
        sampled = list(_sampled(nodes[id], found))
        operation = nodes[id].operation or UNATTRIBUTED
        own[operation] += sampled
        sides[training.snapshot.lanes[nodes[id].lane].on_driver][operation] += sampled
        path = _path(nodes[id], nodes)
        for name in set(path):
            subtree[name] += sampled
        if path and training.snapshot.lanes[nodes[id].lane].on_driver:
            places[operation].setdefault(PATH.join(path), []).extend(sampled)
    both = sides[True].keys() & sides[False].keys()
    return Code(
        sampled_ns=sum(round(stack.ns) for found in stacks.values() for stack in found),
        lines={name: _lines(found, _Sampled.innermost) for name, found in own.items()},
        calls=_calls(own),
        inner_loops={name: _lines(found, _Sampled.inner_loop)[:FEW_LINES] for name, found in subtree.items()},
        outer_loops={name: _lines(found, _Sampled.outer_loop)[:FEW_LINES] for name, found in subtree.items()},
        in_workers=_in_workers(workers),
        places={
            path: _lines(found, _Sampled.innermost)[:FEW_LINES]
            for at in places.values()
            if len(at) > 1
            for path, found in at.items()
        },
        imports=_lines([one for found in own.values() for one in found], _Sampled.importing),
        growth=_growth(own),
        on_driver={name: _lines(sides[True][name], _Sampled.innermost) for name in both},
        elsewhere={name: _lines(sides[False][name], _Sampled.innermost) for name in both},
    )


@dataclass(frozen=True, slots=True)
class _Sampled:
    """One stack, with the training time that it stands for."""

    frames: tuple[Frame, ...]
    ns: float
    memory: int

    def innermost(self) -> Frame | None:
        """The innermost line of the user."""
        return next((frame for frame in reversed(self.frames) if frame.user), None)

    def inner_loop(self) -> Frame | None:
        return next((frame for frame in reversed(self.frames) if frame.user and frame.loop), self.innermost())

    def outer_loop(self) -> Frame | None:
        return next((frame for frame in self.frames if frame.user and frame.loop), self.innermost())

    def importing(self) -> Frame | None:
        """The line of the user that imports a module, whose own code may be the user's, too."""
        importer = None
        for frame in self.frames:
            if "importlib" in frame.file and not frame.user:
                return importer
            importer = frame if frame.user else importer
        return None

    def below(self) -> tuple[str, ...]:
        """What the innermost line of the user calls in libraries."""
        users = (place for place in range(len(self.frames) - 1, -1, -1) if self.frames[place].user)
        frames = self.frames[next(users, -1) + 1 :]
        return tuple(f"{_module(frame.file)}:{frame.function}" for frame in frames)


def _sampled(node: Node, stacks: Sequence[Stack]) -> Iterable[_Sampled]:
    """Samples tell how the time of a node is distributed; how much it is, the ledger knows better."""
    total = sum(stack.ns for stack in stacks)
    for stack in stacks:
        yield _Sampled(stack.frames, max(0, node.ledger_ns) * stack.ns / total if total else 0.0, stack.memory)


def _in_workers(sampled: Sequence[tuple[Node, Stack]]) -> tuple[Line, ...]:
    """No account has the time that a worker spends outside of operations, so its samples are all that is known. A
    forked worker that runs none of the user's code, such as one that waits for a task, has the line that started it."""
    whole = sum(stack.ns for _, stack in sampled)
    outside = [_Sampled(stack.frames, stack.ns, stack.memory) for node, stack in sampled if node.operation is None]
    started = [one for one in outside if not any(STARTS_PROCESS in name for name in one.below())]
    return tuple(replace(line, share=line.ns / whole) for line in _lines(started, _Sampled.innermost) if whole)


def _path(node: Node, nodes: dict[int, Node]) -> list[str]:
    """The operations that a node is inside of, outermost first, and its own."""
    names, above = [], node
    while above.operation is not None:
        names.append(above.operation)
        if above.parent is None or above.parent not in nodes:
            break
        above = nodes[above.parent]
    return names[::-1]


def _lines(sampled: Sequence[_Sampled], choose: Callable[[_Sampled], Frame | None]) -> tuple[Line, ...]:
    times: Counter[tuple[str, int]] = Counter()
    frames: dict[tuple[str, int], Frame] = {}
    below: defaultdict[tuple[str, int], Counter[tuple[str, ...]]] = defaultdict(Counter)
    for one in sampled:
        if (frame := choose(one)) is not None:
            key = (frame.file, frame.line)
            times[key] += one.ns  # type: ignore[assignment]
            frames[key] = frame
            below[key][one.below()] += one.ns  # type: ignore[assignment]
    whole = sum(one.ns for one in sampled)
    return tuple(
        _line(frames[key], ns, ns / whole, below[key])
        for key, ns in times.most_common(MOST_LINES)
        if whole and ns >= LEAST_SHARE * whole
    )


def _line(frame: Frame, ns: float, share: float, below: Counter[tuple[str, ...]]) -> Line:
    hottest = max(below, key=below.__getitem__)
    whole = sum(below.values())
    direct = below[()] / whole if whole else 0.0
    return Line(frame.file, frame.line, frame.function, frame.source, ns, share, hottest, direct, frame.loop)


def _calls(sampled: dict[str, list[_Sampled]]) -> dict[str, tuple[Call, ...]]:
    times: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for operation, found in sampled.items():
        for one in found:
            path = tuple(f"{frame.file}:{frame.function}" for frame in one.frames if frame.user)
            if path:
                times[operation, path] += one.ns  # type: ignore[assignment]
    calls: defaultdict[str, list[Call]] = defaultdict(list)
    for (operation, path), ns in times.most_common(MOST_CALLS):
        calls[operation].append(Call(path, ns))
    return {operation: tuple(found) for operation, found in calls.items()}


def _growth(sampled: dict[str, list[_Sampled]]) -> tuple[Growth, ...]:
    grown: Counter[tuple[str, str, int]] = Counter()
    times: Counter[tuple[str, str, int]] = Counter()
    lines: dict[tuple[str, str, int], Line] = {}
    for operation, found in sampled.items():
        for one in found:
            if (frame := one.innermost()) is not None:
                key = (operation, frame.file, frame.line)
                grown[key] += one.memory
                times[key] += one.ns  # type: ignore[assignment]
                lines.setdefault(key, _line(frame, 0.0, 0.0, Counter({one.below(): 1})))
    usual = sum(grown.values()) / sum(times.values()) if sum(times.values()) else 0.0
    return tuple(
        Growth(key[0], lines[key], size, size / times[key] / usual if times[key] and usual > 0 else 1.0)
        for key, size in grown.most_common(MOST_GROWING)
        if size > 0
    )


def _module(file: str) -> str:
    """`numpy.core.shape_base` for the file of a library."""
    for start in ("site-packages/", "dist-packages/", "lib-dynload/"):
        _, found, rest = file.rpartition(start)
        if found:
            break
    else:
        rest = file.partition("/lib/python")[2].partition("/")[2] or file
    return rest.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
