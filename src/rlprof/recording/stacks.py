"""The stacks of all processes, as rows for the session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlprof.ledger.stacks import CodeLine, Key, StackTotals, Total
from rlprof.recording.sources import Sources
from rlprof.session.info import readable

FrameRow = tuple[int, str, str, int, int, str, int]
StackRow = tuple[int, int, str, int, int]


class SessionStacks:
    """Numbers frames and stacks, and knows which rows the session does not hold yet."""

    def __init__(self) -> None:
        try:
            self._folder = os.getcwd()
        except OSError:  # the working directory is gone
            self._folder = ""
        self.own = StackTotals()
        """Samples of this process."""
        self._sources = Sources(self._folder)
        self._frames: dict[CodeLine, int] = {}
        self._ids: dict[Key, int] = {}
        self._new_frames: list[FrameRow] = []
        self._unwritten: dict[int, StackRow] = {}
        self._numbers: list[int] = []
        """Of the frames of `own`."""
        self._of_workers: dict[int, set[Key]] = {}

    def take(self, ledger: Any) -> None:
        """Add what the ledger of this process has sampled."""
        own = self.own
        own.take(ledger)
        self._numbers += self.numbers(own.frames[len(self._numbers) :])
        changed, own.changed = own.changed, set()
        self._put(
            ((node, tuple(self._numbers[frame] for frame in frames)), own.totals[node, frames])
            for node, frames in changed
        )

    def numbers(self, frames: Sequence[CodeLine]) -> list[int]:
        """The session's ids of these frames."""
        return [self._number(frame) for frame in frames]

    def put_worker(self, worker: int, totals: Mapping[Key, Total]) -> None:
        """Replace all that a worker process has sampled."""
        gone = self._of_workers.get(worker, set()) - totals.keys()
        self._put((key, Total(0, 0)) for key in gone)
        self._put(totals.items())
        self._of_workers[worker] = set(totals)

    def forget(self) -> None:
        """The ledger was reset. The session drops all stacks, and keeps the frames."""
        self.own.forget()
        self._ids.clear()
        self._unwritten.clear()
        self._of_workers.clear()

    def rows(self) -> tuple[list[FrameRow], list[StackRow]]:
        """Frames and stacks that are not written yet, or have changed."""
        return self._new_frames[:], list(self._unwritten.values())

    def written(self, frames: Sequence[FrameRow], stacks: Sequence[StackRow]) -> None:
        """The session holds these rows now."""
        del self._new_frames[: len(frames)]
        for row in stacks:
            if self._unwritten.get(row[0]) == row:
                del self._unwritten[row[0]]

    def _put(self, totals: Iterable[tuple[Key, Total]]) -> None:
        for key, (ns, memory) in totals:
            new = key not in self._ids
            if new and not ns and not memory:
                continue  # moved elsewhere before it was ever written
            id = self._ids.setdefault(key, len(self._ids))
            self._unwritten[id] = id, key[0], f"[{','.join(map(str, key[1]))}]", max(0, ns), memory

    def _number(self, frame: CodeLine) -> int:
        number = self._frames.get(frame)
        if number is None:
            number = self._frames[frame] = len(self._frames)
            # A report names lines of the user's, so that they can be opened and changed.
            user = frame.user and frame.line > 0 and self._sources.can_be_opened(frame.file)
            source, loop = self._sources.statement(frame.file, frame.line) if user else ("", False)
            file = self._shown(frame.file)
            self._new_frames.append((number, file, frame.function, frame.line, int(user), readable(source), int(loop)))
        return number

    def _shown(self, file: str) -> str:
        """As short as a person would call the file: from the working directory, or from the script's folder."""
        path = Path(file)
        if not path.is_absolute() or not self._folder:
            return readable(file)
        if path.is_relative_to(self._folder):
            return readable(str(path.relative_to(self._folder)))
        script = Path(self._folder, sys.argv[0] if sys.argv else "").parent
        if not path.is_relative_to(script) or script == Path(script.anchor):
            return readable(file)
        shown = path.relative_to(script)
        return readable(file if Path(self._folder, shown).exists() else str(shown))
