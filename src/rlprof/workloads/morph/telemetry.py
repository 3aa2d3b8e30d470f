"""Events of the training as JSON lines in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TextIO

from rlprof import profile
from rlprof.errors import RlprofError
from rlprof.workloads.morph.settings import MorphSettings


class Telemetry:
    """Writes events if there is a folder and the level is not off. Runs that share a folder append to one file."""

    def __init__(self, settings: MorphSettings) -> None:
        self._file: TextIO | None = None
        self.is_debug = settings.telemetry_level == "debug"
        if settings.telemetry_dir is None:
            if self.is_debug:
                raise RlprofError("telemetry_level=debug writes nothing without --telemetry-dir; give a folder")
        elif settings.telemetry_level != "off":
            folder = Path(settings.telemetry_dir)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._file = (folder / "events.jsonl").open("a", encoding="utf-8")
            except OSError as error:
                raise RlprofError(f"telemetry cannot be written to {folder}: {error.strerror}") from error

    def write(self, event: str, **facts: Any) -> None:
        if self._file is not None:
            with profile("telemetry"):
                self._file.write(json.dumps({"event": event, **facts}) + "\n")

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
