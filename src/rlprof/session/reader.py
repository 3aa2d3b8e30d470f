"""Reads a session, while it is being written or long after. Everything it returns has been checked.

`rlprof.open_session` is the public way in.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import msgspec

from rlprof.errors import UnreadableError
from rlprof.ledger.rows import EVENT, LaneRow, NodeRow, OperationRow, with_types
from rlprof.ledger.snapshot import Account, Lane, Node, Snapshot, SpanCost, build_snapshot
from rlprof.session import schema
from rlprof.session.connection import MOST_BLOCK, Database
from rlprof.session.evidence import Evidence
from rlprof.session.folder import find_database
from rlprof.session.info import Info
from rlprof.session.records import Artifact, Lost, Mark, Sample
from rlprof.session.schema import FIRST_OF_WORKERS
from rlprof.session.stacks import Stack, read_stacks
from rlprof.session.table import Table

MOST_EVENTS = 50_000_000
"""Maximum number of events on the timeline. They take 1.2 GB unpacked."""

Checked = TypeVar("Checked")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Signed = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Id = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]

_Flag = Literal[0, 1]
_Operation = with_types(OperationRow, str, id=Id)
LaneRowRead = with_types(
    LaneRow, str, id=Id, on_driver=_Flag, alive=_Flag, uses=Count, node=Id, since=Signed, waits=_Flag
)  # fmt: skip
_Node = with_types(
    NodeRow, Count, id=Id, lane=Id, histogram=bytes,
    **dict.fromkeys(
        ("parent", "operation", "off_cpu", "memory_peak", "memory_rise", "device_peak", "device_rise"), Signed
    ),
)  # fmt: skip
_SUMMED = attrgetter("calls", "busy", "self", "ledger", "overlapped", "waited", "off_cpu", "cost")


class State(msgspec.Struct, frozen=True):
    """Totals of the ledger at the last flush."""

    wall: Count
    clock: str
    cpu: str
    clock_drift: Signed
    open: Count
    iterations: Count
    iteration_sum: Count
    iteration_min: Count
    iteration_max: Count
    iteration_histogram: bytes
    steps: Signed
    episodes: Signed
    process_peak: Count
    device_pending: Count
    device_lost: Count
    time: Signed
    written: Count
    writer_cpu_ns: Count
    torch_threads: int | None = None
    after_ns: Count = 0
    """Time since the last step, update or mark, in ns."""
    wait_cpu_ns: Count = 0
    """CPU time of the whole process in the driver's waits that probes saw."""
    tick_ns: Count = 0
    """Interval between two samples of the driver's stack. 0 if it was not sampled."""
    stacks_lost: Count = 0
    """Sampled time that is in no stack, because there were too many, in ns."""
    idle_ns: Count = 0
    """Time in which no span has ended, besides those that only wait."""
    planned: dict[str, Count] = {}
    """Planned number of events of each kind in this run, as far as it is known."""


class End(msgspec.Struct, frozen=True):
    """How the run ended: `finished`, or what stopped it."""

    how: str
    time: Count
    lost: Lost | None = None


class IterationRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One iteration, or several merged ones (`first` to `last`, from 0). Times are ns of the ledger's clock."""

    start: Signed
    end: Signed
    first: Id
    last: Id
    steps: Signed
    episodes: Signed
    wall_ns: Count


class Gain(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Time and calls that one node of a call tree gained in some iterations."""

    node: Id
    calls: Count
    self_ns: Signed
    ledger_ns: Signed
    overlapped_ns: Signed
    waited_ns: Signed
    off_cpu_ns: Signed


def open_session(path: str | os.PathLike[str] = "last") -> Session:
    """Open a recorded run to read it as data.

        with rlprof.open_session("last") as session:
            for account in session.accounts():
                print(account.operation, account.calls, account.ledger_ns)

    path: a session's folder, its session.db, or "last" for the newest one (default: "last").

    Raises UnreadableError if there is no session or if it cannot be read.
    """
    return Session(path)


class Session:
    """A session at the moment when it was opened. What the training writes later is not seen.

    Use it as a context manager, or call `close()`. Times are nanoseconds, sizes are bytes.

    path: the session.db.
    info: the run: name, command line, machine, versions and settings.
    state: the totals at the last flush. None before the first flush.
    end: how the run ended. None while the run goes on, or if it was killed.
    cost: cost of one span on the recording machine.
    evidence: what the probes know besides times: batch sizes, optimizers, wrappers, settings of torch.
    """

    def __init__(self, given: str | os.PathLike[str], briefly: bool = False) -> None:
        self.path = find_database(given)
        self._database = Database(self.path)
        self._damaged, self._explained = self._database.damaged, self._database.explained
        try:
            self._check_format()
            self._database.check_tables()
            values = dict(self._rows("SELECT key, value FROM session", tuple[str, str]))
            if "info" not in values:
                raise self._damaged("it has no description of the run")
            self.info = self._json(values["info"], Info, "info")
            self.state = self._json(values["state"], State, "state") if "state" in values else None
            self.end = self._json(values["end"], End, "end") if "end" in values else None
            if self.end is None and not briefly:
                self._database.release()
            self._snapshot: Snapshot | None = None
            self.evidence = self._json(values.get("evidence", "{}"), Evidence, "evidence")
            self.cost = SpanCost.over(self._json(values.get("costs", "[]"), list[SpanCost], "costs"))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    @property
    def folder(self) -> Path:
        return self.path.parent

    def accounts(self) -> Table[Account]:
        """Where the training's time went, by operation. The largest ledger time comes first.

        The last two rows are `unattributed`, the time outside all spans, and `rlprof`, the profiler's own cost. Over
        all rows, `ledger_ns` sums to the wall time.

            frame = session.accounts().to_pandas()
            frame["share"] = frame.ledger_ns / frame.ledger_ns.sum()
        """
        snapshot = self.snapshot()
        rest = [
            Account(operation=name, self_ns=spent, ledger_ns=spent, wall_ns=spent, cpu_ns=None)
            for name, spent in (("unattributed", snapshot.unattributed_ns), ("rlprof", snapshot.rlprof_ns))
        ]
        return Table(Account, [*snapshot.accounts, *rest])

    def tree(self) -> Table[Node]:
        """The call trees of all lanes, rlprof's own cost taken out. Each node comes before the nodes below it.

        A root has no operation: its times are those outside all spans of its lane.

            depth = {None: -1}
            for node in session.tree():
                depth[node.id] = depth[node.parent] + 1
                print("  " * depth[node.id], node.operation or session.lanes()[node.lane].name, node.wall_ns)
        """
        below: defaultdict[int | None, list[Node]] = defaultdict(list)
        for node in self.snapshot().net_nodes:
            below[node.parent].append(node)
        rows: list[Node] = []
        pending = below[None][::-1]
        while pending:
            rows.append(pending.pop())
            pending += sorted(below[rows[-1].id], key=lambda node: node.wall_ns)
        return Table(Node, rows)

    def lanes(self) -> Table[Lane]:
        """The threads, asyncio tasks and worker processes of the training. A lane's `id` is its place in the table."""
        return Table(Lane, self.snapshot().lanes)

    def snapshot(self) -> Snapshot:
        """Everything that was recorded up to the last flush."""
        if self._snapshot is None:
            self._snapshot = self._read_snapshot()
        return self._snapshot

    def _read_snapshot(self) -> Snapshot:
        if self.state is None:
            raise UnreadableError(f"{self.path} is still empty: the run ended, or was stopped, before its first flush")
        operations = self._rows(f"SELECT {', '.join(OperationRow._fields)} FROM operation ORDER BY id", _Operation)
        lanes = self._rows(f"SELECT {', '.join(LaneRow._fields)} FROM lane ORDER BY id", LaneRowRead)
        rows = self._rows(f"SELECT {', '.join(schema.NODE_COLUMNS)} FROM node ORDER BY id", _Node)
        self._check_tree(rows, {row.id for row in operations}, [row.id for row in lanes])
        state = msgspec.structs.asdict(self.state)
        named = [
            row._replace(on_driver=bool(row.on_driver), alive=bool(row.alive), waits=bool(row.waits)) for row in lanes
        ]
        raw = {**state, "operations": operations, "lanes": named, "nodes": rows}
        try:
            snapshot = build_snapshot(raw, self.cost)
            snapshot.check()
        except (AssertionError, ArithmeticError, ValueError) as error:
            raise self._damaged(str(error)) from error
        return snapshot

    def iterations(self) -> Table[IterationRow]:
        """The iterations of the training, in order. Neighbours are merged where a long run has very many."""
        columns = ", ".join(schema.ITERATION_COLUMNS)
        rows = self._rows(f"SELECT {columns} FROM iteration ORDER BY last", IterationRow)
        iterations = Table(IterationRow, rows)
        before = -1
        for iteration in iterations:
            if not before < iteration.first <= iteration.last:
                raise self._damaged(f"iteration {iteration.last} is out of order")
            before = iteration.last
        return iterations

    def gains(self, first: IterationRow, last: IterationRow) -> list[Gain]:
        """The gains of each node from one iteration to another, both included."""
        sums = ", ".join(f"sum({column})" for column in schema.GAIN_COLUMNS[2:])
        query = f"SELECT node, {sums} FROM gain WHERE iteration BETWEEN ? AND ? GROUP BY node"
        return self._rows(query, Gain, (first.last, last.last))

    def stacks(self) -> Table[Stack]:
        """Which lines of Python the time was spent in, sampled, by node of the call trees. The longest comes first.

        for stack in session.stacks():
            lines = [frame for frame in stack.frames if frame.user]
            print(stack.node, lines[-1] if lines else "-", stack.ns)
        """
        nodes = {node.id for node in self.snapshot().nodes}
        return Table(Stack, read_stacks(self._rows, nodes, self._damaged))

    def samples(self) -> list[Sample]:
        """Samples of the system, in order."""
        return self._samples()

    def _samples(self, order: str = "") -> list[Sample]:
        share = Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None
        size = Count | None
        kind = tuple[Signed, Count, share, share, share, share, size, size, size, Count, size, share, size, Count]
        columns = ", ".join(schema.SAMPLE_COLUMNS)
        return [Sample(*row) for row in self._rows(f"SELECT {columns} FROM sample ORDER BY time{order}", kind)]

    def artifacts(self) -> list[Artifact]:
        query = "SELECT path, kind, time FROM artifact ORDER BY time, path"
        return [Artifact(*row) for row in self._rows(query, tuple[str, str, int])]

    def marks(self) -> list[Mark]:
        return self._marks()

    def _marks(self, order: str = "") -> list[Mark]:
        query = f"SELECT time, kind, text FROM mark ORDER BY time{order}"
        return [Mark(*row) for row in self._rows(query, tuple[int, str, str])]

    def timeline(self) -> Iterator[bytes]:
        """Blocks of packed span events: `rlprof.ledger.rows.EVENT`."""
        self._database.check_rows("timeline")
        ((total,),) = self._rows("SELECT coalesce(sum(events), 0) FROM timeline", tuple[Count])
        if total > MOST_EVENTS:
            raise self._damaged(f"its timeline has {total:,} events, and at most {MOST_EVENTS:,} are read")
        self._database.limit_values(MOST_BLOCK)
        with self._explained():
            for events, block in self._database.execute("SELECT events, block FROM timeline ORDER BY id"):
                yield self._decompress(events, block)

    def timeline_lost(self) -> int:
        """Number of spans missing on the timeline, because they were overwritten before a flush or are too old."""
        ((lost,),) = self._rows("SELECT coalesce(sum(lost), 0) FROM timeline", tuple[Count])
        return int(lost)

    def _decompress(self, count: Any, block: Any) -> bytes:
        """Unpack a block, but never more than the number of events that it declares."""
        if not isinstance(count, int) or not 0 <= count <= MOST_EVENTS:
            raise self._damaged("a block of the timeline does not declare its number of events")
        try:
            unpacking = zlib.decompressobj()
            events = unpacking.decompress(block, count * EVENT.size + 1)
        except (zlib.error, TypeError) as error:
            raise self._damaged(f"a block of the timeline: {error}") from error
        if len(events) > count * EVENT.size:
            raise self._damaged(f"a block of the timeline unpacks to more than its {count:,} events")
        if len(events) < count * EVENT.size or not unpacking.eof:
            raise self._damaged("a block of the timeline is cut")
        return events

    def _rows(self, query: str, kind: Any, values: tuple[Any, ...] = ()) -> list[Any]:
        table = query.partition(" FROM ")[2].split()[0]
        if table != "gain":  # only its sums are read
            self._database.check_rows(table)
        with self._explained():
            rows = self._database.execute(query, values).fetchall()
        try:
            checked: list[Any] = msgspec.convert(rows, list[kind])
        except msgspec.ValidationError as error:
            raise self._damaged(f"table {table}: {error}") from error
        return checked

    def _json(self, text: str, kind: type[Checked], where: str) -> Checked:
        try:
            return msgspec.json.decode(text, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._damaged(f"{where}: {error}") from error

    def _check_format(self) -> None:
        with self._explained():
            (application,) = self._database.execute("PRAGMA application_id").fetchone()
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if application != schema.APPLICATION_ID:
            raise UnreadableError(
                f"{self.path} is an SQLite file, but not an rlprof session; give a session's folder or `last`"
            )
        if version > schema.VERSION:
            raise UnreadableError(
                f"{self.path} was written by a newer rlprof (format {version}; this one reads up to {schema.VERSION});"
                " update rlprof to read it"
            )
        if version < 1:
            raise self._damaged(f"its format is {version}")
        if version < schema.VERSION:
            raise UnreadableError(
                f"{self.path} was written by an older rlprof (format {version}; this one reads {schema.VERSION});"
                " record it again, or read it with that rlprof"
            )

    def _check_tree(self, nodes: Sequence[NodeRow], operations: set[int], lanes: Sequence[int]) -> None:
        # Lanes of worker processes have far higher numbers than the driver's.
        own = [lane for lane in lanes if lane < FIRST_OF_WORKERS]
        if own != list(range(len(own))):
            raise self._damaged("lanes are missing")
        there = set(lanes)
        known: dict[int, int] = {}
        total = 0
        for row in nodes:
            if row.lane not in there or (row.parent >= 0 and known.get(row.parent) != row.lane):
                raise self._damaged(f"node {row.id} is not part of a tree")
            if (row.parent < 0) != (row.operation not in operations):
                raise self._damaged(f"node {row.id} has no operation")
            known[row.id] = row.lane
            total += sum(_SUMMED(row))
        if total > 2**62:
            raise self._damaged("its times are longer than those of any run")
