"""How often torch.compile compiled, how long that took, and Dynamo's own reasons for compiling again."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from typing import Any

from rlprof.probes.seen import text
from rlprof.session.evidence import Compiling, Frame
from rlprof.session.secrets import mask_text

MOST_FRAMES = 16
MOST_REASONS = 3
_LINE = re.compile(r"Line: (\d+), Name: (.*), Filename: (.*)")
_LIBRARY = re.compile(r"[/\\](site-packages|dist-packages|lib[/\\]python\d[^/\\]*)[/\\]")


class DynamoRecords:
    """Reads Dynamo's records of its compilations. Dynamo keeps the last 64, so they are read about once a second."""

    def __init__(self) -> None:
        self._read: set[tuple[Any, ...]] = set()
        self._frames: dict[str, _Frame] = {}
        self._number = self._ns = 0

    def read(self) -> Compiling:
        utils = sys.modules.get("torch._dynamo.utils")
        records = getattr(utils, "get_compilation_metrics", None)
        if records is not None:
            with suppress(Exception):  # other versions of torch may keep other records
                for record in records():
                    self._add(record)
        again = [frame for frame in self._frames.values() if frame.again]
        again.sort(key=lambda frame: -frame.again_ns)
        return Compiling(
            number=self._number,
            ns=self._ns,
            again=sum(frame.again for frame in again),
            again_ns=sum(frame.again_ns for frame in again),
            frames=tuple(frame.as_evidence() for frame in again[:MOST_FRAMES]),
        )

    def _add(self, record: Any) -> None:
        key = (record.compile_id, record.is_forward, record.start_time_us)
        if key in self._read or not record.compile_id:
            return
        self._read.add(key)
        ns = max(0, int(1000 * (record.duration_us or 0)))
        self._number += 1
        self._ns += ns
        # "FRAME/COMPILATION", the compilation counted from 0 for each frame
        frame_id, _, number = str(record.compile_id).partition("/")
        frame = self._frames.setdefault(frame_id, _Frame())
        if record.co_name and not frame.function:
            frame.name(record)
        if number and number.split("_")[0] != "0":
            frame.again += record.is_forward is not False
            frame.again_ns += ns
            if record.recompile_reason and len(frame.reasons) < MOST_REASONS:
                reason = mask_text(_short(record.recompile_reason))
                if reason not in frame.reasons:
                    frame.reasons.append(reason)


class _Frame:
    """A compiled function."""

    def __init__(self) -> None:
        self.function = self.file = ""
        self.line = self.again = self.again_ns = 0
        self.reasons: list[str] = []

    def name(self, record: Any) -> None:
        """Take the function's own line, or the innermost line of the program that called it: what Dynamo compiles of
        a module is a function of torch."""
        self.function, self.file = text(record.co_name), text(record.co_filename)
        self.line = int(record.co_firstlineno or 0)
        for entry in reversed(record.stack_trace or []):
            found = _LINE.match(entry)
            if found and not _LIBRARY.search(found[3]):
                if _LIBRARY.search(self.file):
                    self.line, self.function, self.file = int(found[1]), text(found[2]), text(found[3])
                return

    def as_evidence(self) -> Frame:
        return Frame(self.function, self.file, self.line, self.again, self.again_ns, tuple(self.reasons))


def _short(reason: str) -> str:
    """The first line, without the source that Dynamo appends and the number of the compilation that did not fit."""
    line = text(reason).strip().split("\n")[0].split("  # ")[0]
    return re.sub(r"^\d+/\d+: ", "", line).strip()[:200]
