"""A session as a speedscope file: the spans of each lane in order of time, and its call tree by self time.

The format: https://www.speedscope.app/file-format-schema.json
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any, BinaryIO

import msgspec

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.export.spans import Spans, write_items
from rlprof.ledger.snapshot import Lane, Node, Snapshot
from rlprof.session.reader import Session


class _Frames:
    """The frames that profiles refer to by number. The file of a frame is its category, which sets its colour in
    speedscope."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def number(self, name: str, category: str) -> int:
        return self._numbers.setdefault((name, category), len(self._numbers))

    def of(self, node: Node) -> int:
        return self.number(node.operation or UNATTRIBUTED, node.category if node.operation else UNATTRIBUTED)

    def written(self) -> list[dict[str, str]]:
        return [{"name": name, "file": category} for name, category in self._numbers]


class _Events:
    """The spans of one track, backwards. Packed, because a million Python objects would need gigabytes."""

    def __init__(self) -> None:
        self.at = array("q")
        self.frame = array("q")
        """The frame of an opening event, or -1 - frame for a closing event."""

    def add(self, at: int, frame: int) -> None:
        self.at.append(at)
        self.frame.append(frame)


def write_speedscope(session: Session, file: BinaryIO) -> str | None:
    """Write the file. Returns a remark for its reader."""
    spans = Spans(session)
    frames = _Frames()
    tracks = _tracks(spans, frames, session.info.origin)
    trees = list(_trees(spans.snapshot, frames))
    # The driver's profile is shown first. Frames come before the profiles that refer to them.
    head = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"rlprof@{metadata.version('rlprof')}",
        "name": session.info.name,
        "activeProfileIndex": 0,
        "shared": {"frames": frames.written()},
    }
    file.write(msgspec.json.encode(head)[:-1] + b',"profiles":[\n')
    lanes = spans.snapshot.lanes
    between = b""
    for lane, track in sorted(tracks, key=lambda key: (not lanes[key[0]].on_driver, key)):
        file.write(between)
        crossing = f" (crossing spans {track})" if track else ""
        _write_evented(file, f"{lanes[lane].name}{crossing}", tracks[lane, track])
        between = b",\n"
    if trees:
        file.write(between)
        write_items(file, trees)
    file.write(b"\n]}\n")
    return spans.remark()


def _tracks(spans: Spans, frames: _Frames, origin: int) -> dict[tuple[int, int], _Events]:
    """The events of each track in reverse order of time: a span closes, then its children, then it opens."""
    tracks: defaultdict[tuple[int, int], _Events] = defaultdict(_Events)
    open_on: defaultdict[tuple[int, int], list[tuple[Any, int, int]]] = defaultdict(list)
    for span in spans:
        key = span.node.lane, span.track
        events, stack = tracks[key], open_on[key]
        while stack and stack[-1][0] is not span.parent:
            _, start, frame = stack.pop()
            events.add(start, frame)
        frame = frames.of(span.node)
        events.add(span.end - origin, -1 - frame)
        stack.append((span, span.start - origin, frame))
    for key, stack in open_on.items():
        for _, start, frame in reversed(stack):
            tracks[key].add(start, frame)
    return tracks


def _write_evented(file: BinaryIO, name: str, events: _Events) -> None:
    head = {
        "type": "evented",
        "name": name,
        "unit": "nanoseconds",
        "startValue": min(0, events.at[-1]),
        "endValue": events.at[0],
    }
    file.write(msgspec.json.encode(head)[:-1] + b',"events":[\n')
    write_items(file, _forwards(events))
    file.write(b"\n]}")


def _forwards(events: _Events) -> Iterator[dict[str, Any]]:
    for at, frame in zip(reversed(events.at), reversed(events.frame)):
        yield {"type": "O" if frame >= 0 else "C", "frame": frame if frame >= 0 else -1 - frame, "at": at}


def _trees(snapshot: Snapshot, frames: _Frames) -> Iterator[dict[str, Any]]:
    """One profile per lane, the driver first: the stack of every place, weighted by its self time. With `unattributed`
    and `rlprof` the weights sum to the lifetime of the lane."""
    by_lane: defaultdict[int, list[tuple[Node, Node]]] = defaultdict(list)
    net = {node.id: node for node in snapshot.net_nodes}  # without rlprof's cost
    for node in snapshot.nodes:
        by_lane[node.lane].append((node, net.get(node.id, node)))
    for lane in sorted(snapshot.lanes, key=lambda lane: (not lane.on_driver, lane.id)):
        if any(node.self_ns for node, _ in by_lane[lane.id]):
            yield _tree(lane, by_lane[lane.id], frames)


def _tree(lane: Lane, pairs: Sequence[tuple[Node, Node]], frames: _Frames) -> dict[str, Any]:
    stacks: dict[int, list[int]] = {}
    own = 0
    weighted = []
    for node, net in pairs:  # a parent comes before its children
        above = [] if node.parent is None else stacks[node.parent]
        stacks[node.id] = above if node.operation is None else [*above, frames.of(node)]
        own += node.self_ns - net.self_ns
        if net.self_ns:
            weighted.append((stacks[node.id] or [frames.of(node)], net.self_ns))
    weighted.sort(key=lambda sample: sample[0])  # so that neighbours share what is above them
    if own:
        weighted.append(([frames.number(RLPROF, RLPROF)], own))
    return {
        "type": "sampled",
        "name": f"{lane.name}: call tree (self time)",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weight for _, weight in weighted),
        "samples": [stack for stack, _ in weighted],
        "weights": [weight for _, weight in weighted],
    }
