"""A very large session: 10^6 iterations, 1,000 lanes and 500 operations, written as a recording writes it."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path

from rlprof.ledger.histogram import pack
from rlprof.ledger.rows import GAIN, MARK, LaneRow, NodeRow, OperationRow
from rlprof.ledger.snapshot import SpanCost
from rlprof.session.info import gather
from rlprof.session.process import identity_of
from rlprof.session.records import Flush, Sample
from rlprof.session.writer import SessionWriter

ITERATION_NS = 2_000_000
PER_LANE = 10
"""Operations of one lane besides its root."""
MARKS = 90
"""Rows that the writer leaves of the iterations, once it has merged them to at most a million gains."""


def make_giant(folder: Path, iterations: int = 1_000_000, lanes: int = 1_000, operations: int = 500) -> Path:
    """A session of a training that is still running: the process is this one."""
    folder.mkdir(parents=True)
    started = gather("giant", 0, "c", {})
    info = replace(started, pid=os.getpid(), process=identity_of(os.getpid()) or "", host=platform.node())
    writer = SessionWriter(folder / "session.db", info)
    wall = iterations * ITERATION_NS
    names = [OperationRow(id, f"operation_{id}", "other") for id in range(operations)]
    nodes = _nodes(lanes, operations, wall)
    rows = [
        LaneRow(id, "thread" if id == 0 else "process", "main" if id == 0 else f"env-{id}", id == 0, True, 1,
                id * (PER_LANE + 1) + 1 + id % PER_LANE, wall - 1_000_000, id % 7 == 0)
        for id in range(lanes)
    ]  # fmt: skip
    each = iterations // MARKS
    for mark in range(MARKS):
        first, last = mark * each, (mark + 1) * each - 1 if mark < MARKS - 1 else iterations - 1
        start, end = first * ITERATION_NS, (last + 1) * ITERATION_NS
        share = (end - start) / wall
        gains = b"".join(
            GAIN.pack(last, node.id, max(1, int(node.calls * share)), int(node.self * share), int(node.ledger * share),
                      0, 0, 0)
            for node in nodes
        )  # fmt: skip
        done = end / wall
        raw = {
            "wall": end, "clock": "tsc", "cpu": "rseq", "clock_drift": 0, "open": lanes, "iterations": last + 1,
            "iteration_sum": end, "iteration_min": ITERATION_NS, "iteration_max": ITERATION_NS,
            "iteration_histogram": pack({680: last + 1}), "steps": (last + 1) * 8, "episodes": 0,
            "process_peak": 1 << 30, "device_pending": 0, "device_lost": 0, "operations": names, "lanes": rows,
            "nodes": nodes if mark == MARKS - 1 else [_scaled(node, done) for node in nodes],
        }  # fmt: skip
        sample = Sample(end, 10**9, 90.0, 80.0, 90.0, 0.0, 1 << 30, 1 << 29, 1 << 30, 8, 4 << 30, None, None, 100_000)
        packed = MARK.pack(start, end, first, last, (last - first + 1) * 8, 0)
        writer.write(Flush(end, raw, [SpanCost(20.0, 20.0, 10.0)], iterations=packed, gains=gains, samples=[sample]))
    writer.close()
    return folder


def _nodes(lanes: int, operations: int, wall: int) -> list[NodeRow]:
    """The driver works all the time. Every lane has a root and ten of the operations below it."""
    nodes: list[NodeRow] = []
    each = wall // (2 * PER_LANE)
    for lane in range(lanes):
        root = len(nodes)
        driver = lane == 0
        nodes.append(_node(root, -1, lane, -1, 0, wall // 2, wall - each * PER_LANE if driver else 0))
        for place in range(PER_LANE):
            operation = (lane * PER_LANE + place) % operations
            nodes.append(_node(len(nodes), root, lane, operation, 1_000_000, each, each if driver else 0))
    return nodes


def _node(id: int, parent: int, lane: int, operation: int, calls: int, own: int, ledger: int) -> NodeRow:
    histogram = pack({640: calls}) if calls else b""
    mean = own // calls if calls else 0
    overlapped = 0 if ledger or parent < 0 else own
    return NodeRow(
        id, parent, lane, operation, calls, calls * mean, own, ledger, overlapped, 0, 0, 0, mean, mean, -1, -1, -1, -1,
        0, 0, histogram,
    )  # fmt: skip


def _scaled(node: NodeRow, done: float) -> NodeRow:
    """The node at an earlier flush."""
    return node._replace(self=int(node.self * done), ledger=int(node.ledger * done), calls=int(node.calls * done))
