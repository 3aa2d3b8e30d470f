"""Samples of the Python stack as a session holds them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from rlprof.errors import UnreadableError

FRAME_COLUMNS = ("id", "file", "function", "line", "user", "source", "loop")
STACK_COLUMNS = ("id", "node", "frames", "ns", "memory")
"""`frames` is a JSON array of ids of frames, outermost first."""

MOST_SOURCE = 300
"""Characters of a statement."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_Signed = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
_Id = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]


@dataclass(frozen=True, slots=True)
class Frame:
    """A line in a function that was on the stack."""

    file: str
    """Relative to the run's working directory, or else to the script's folder, if it lies inside one of them."""
    function: str
    """Qualified name, such as `Buffer.add`."""
    line: int
    """From 1; 0 if it is unknown."""
    user: bool
    """True for the user's code, False for the standard library and installed packages."""
    source: str
    """Text of the statement in the user's code; empty if it is unknown."""
    loop: bool = False
    """True if the line is inside a loop of its function."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What was sampled in one stack while one node of a call tree was innermost."""

    node: int
    """Id of a `Node` in `Session.tree()`."""
    frames: tuple[Frame, ...]
    """Outermost first, without rlprof's own. Empty if only rlprof or C was on the stack."""
    ns: int
    """Sampled time. Each sample stands for the time since the one before, whatever the rate."""
    memory: int
    """Change of the process's resident memory, in bytes. Negative if it shrank."""


_FrameRow = tuple[_Id, str, str, _Count, Literal[0, 1], str, Literal[0, 1]]
_StackRow = tuple[_Id, _Id, str, _Count, _Signed]


def read_stacks(
    rows: Callable[[str, Any], list[Any]], shown: Collection[int], damaged: Callable[[str], UnreadableError]
) -> list[Stack]:
    """All stacks with any time or change of memory, the longest first.

    shown: nodes of the call trees. They leave out nodes without any time: samples there belong to the node above.
    """
    parents: dict[int, int] = dict(rows("SELECT id, parent FROM node", tuple[_Id, _Signed]))
    frames = {
        id: Frame(file, function, line, bool(user), source, bool(loop))
        for id, file, function, line, user, source, loop in rows(
            f"SELECT {', '.join(FRAME_COLUMNS)} FROM frame", _FrameRow
        )
    }
    found = []
    total = 0
    for id, node, listed, ns, memory in rows(f"SELECT {', '.join(STACK_COLUMNS)} FROM stack ORDER BY id", _StackRow):
        try:
            numbers = msgspec.json.decode(listed, type=list[int])
            lines = tuple(frames[number] for number in numbers)
        except (msgspec.DecodeError, KeyError, RecursionError) as error:
            raise damaged(f"stack {id} has frames that are unknown: {error}") from error
        while node not in shown and (ns or memory):
            if node not in parents:
                raise damaged(f"stack {id} belongs to no node")
            node = parents[node]  # noqa: PLW2901 - the tree has no cycles, which the reader has checked
        total += ns
        if ns or memory:
            found.append(Stack(node, lines, ns, memory))
    if total > 2**62:
        raise damaged("its stacks were sampled for longer than any run takes")
    return sorted(found, key=lambda stack: -stack.ns)
