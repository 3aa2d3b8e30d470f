"""Adds what the probes of worker processes know to the evidence of the driver's process."""

from __future__ import annotations

from dataclasses import replace

from rlprof.recording.worker_trees import Dump
from rlprof.session.evidence import Evidence, Level, Worker

MOST_WORKERS = 64
"""Worker processes that are listed. Further ones only add to the levels."""


class WorkersEvidence:
    """The last evidence of each worker process, also after its end."""

    def __init__(self) -> None:
        self._of: dict[str, Dump] = {}

    def put(self, file: str, dump: Dump) -> None:
        """Keep what a worker process has written to this file."""
        if dump.evidence is not None and (file in self._of or len(self._of) < 16 * MOST_WORKERS):
            self._of[file] = dump

    def added_to(self, evidence: Evidence) -> Evidence:
        workers = []
        levels = {(level.module, level.name): level for level in evidence.levels}
        for dump in self._of.values():
            found = dump.evidence
            assert found is not None  # see put
            workers.append(Worker(dump.name, found.torch_threads, found.cpu_ns, found.helpers_cpu_ns))
            for row in found.levels:
                level = Level(*row)
                known = levels.get((level.module, level.name))
                if known is not None:
                    level = replace(level, calls=known.calls + level.calls, own_ns=known.own_ns + level.own_ns)
                levels[level.module, level.name] = level
        return replace(
            evidence,
            workers=tuple(workers[:MOST_WORKERS]),
            levels=tuple(sorted(levels.values(), key=lambda level: level.depth)),
        )
