"""The runs of the folder as events: only rows that have changed are sent."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from dataclasses import asdict

from rlprof.serve.pump import Pump, event
from rlprof.serve.rendered import encoded
from rlprof.serve.runs import Run, Runs

INTERVAL = 2.0
BUSY_INTERVAL = 0.05
"""While there are sessions that were not read yet."""
AT_ONCE = 0.3
"""Seconds of reading before the rows are shown, even if some are missing."""


class Home(Pump[int]):
    """The cursor is the version of the table that a page has."""

    def __init__(self, runs: Runs, threads: Executor) -> None:
        super().__init__()
        self.runs = runs
        self._threads = threads
        self._rows: dict[str, tuple[str, int]] = {}
        """By folder: the row as JSON, and the version since when it is so. In the order of the table."""
        self._missing = 0
        self._version = 0

    @property
    def version(self) -> int:
        return self._version

    async def work(self) -> float:
        loop = asyncio.get_running_loop()
        self._take(*await loop.run_in_executor(self._threads, self.runs.scan, AT_ONCE))
        return BUSY_INTERVAL if self._missing else INTERVAL

    def news(self, cursor: int) -> tuple[bytes, int]:
        if self._version <= cursor:
            return b"", cursor
        return event("runs", self.since(cursor), self.mark), self._version

    def since(self, version: int) -> str:
        """The rows that are newer than a version, and the names of all rows in their order."""
        rows = ",".join(text for text, since in self._rows.values() if since > version)
        return f'{{"rows":[{rows}],"order":{encoded(list(self._rows))},"missing":{self._missing}}}'

    def _take(self, found: list[Run], missing: int) -> None:
        version = self._version + 1
        rows: dict[str, tuple[str, int]] = {}
        for run in found:
            text = encoded(asdict(run))
            before = self._rows.get(run.folder)
            rows[run.folder] = before if before is not None and before[0] == text else (text, version)
        if rows != self._rows or list(rows) != list(self._rows) or missing != self._missing or not self._version:
            self._rows, self._missing, self._version = rows, missing, version
            self.publish()
