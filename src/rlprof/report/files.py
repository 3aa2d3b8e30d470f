"""The files that a run writes beside its session: raw.json and summary.txt, on request in a flat layout too.

Writing them takes about a fifth of a millisecond per operation, and a training that gets SIGTERM often has ten seconds.
For a large session another process writes them, which may go on after the training has ended.
"""

from __future__ import annotations

import gc
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rlprof.analysis.report import Report, build_report
from rlprof.render.names import literal, shorten
from rlprof.report.answer import end_of_run
from rlprof.report.json import to_json
from rlprof.report.no_training import no_training
from rlprof.report.text import to_text
from rlprof.session.folder import DATABASE, write_private
from rlprof.session.reader import Session
from rlprof.session.records import Verdict

RAW = "raw.json"
SUMMARY = "summary.txt"

MOST_CELLS = 300
"""Of one line of the end-of-run summary."""

SMALL = 1 << 20
"""Bytes of session.db, about a thousand operations. Starting another process would take longer than writing these."""

LEAST_PATIENCE = 0.5
"""Seconds that the end of a run waits for the other process in any case, however late it is already."""

Warn = Callable[[str, BaseException | None], None]


@dataclass(frozen=True, slots=True)
class Written:
    verdict: Verdict
    error: str = ""


def write_outputs(folder: Path, flat_folders: Sequence[Path], warn: Warn, deadline: float) -> Verdict:
    """Write the files, also to the flat folders. Returns the verdict, for the end-of-run summary."""
    small = (folder / DATABASE).stat().st_size <= SMALL
    written = write_here(folder, flat_folders) if small else _write_elsewhere(folder, flat_folders, deadline)
    if written is None:
        return Verdict(pending=True)
    if written.error:
        warn(f"cannot write {RAW} and {SUMMARY} in {folder}: {written.error}. `rlprof report` writes them", None)
    return written.verdict


def write_here(folder: Path, flat_folders: Sequence[Path]) -> Written:
    with Session(folder) as session:
        report = build_report(session)
    nothing = no_training(report)
    verdict = Verdict(
        tuple(shorten(literal(line), MOST_CELLS) for line in ([nothing] if nothing else end_of_run(report)))
    )
    try:
        write_files(folder, report)
        for flat in flat_folders:
            copy_flat(folder, flat)
    except OSError as error:
        return Written(verdict, str(error))
    return Written(verdict)


def write_files(folder: Path, report: Report) -> None:
    """Write raw.json, the JSON report, and summary.txt, the text report."""
    write_private(folder / RAW, to_json(report).encode())
    write_private(folder / SUMMARY, to_text(report).encode())


def copy_flat(folder: Path, flat: Path) -> None:
    """Copy them to raw/NAME_TIMESTAMP.json and reports/NAME_TIMESTAMP_summary.txt, with all runs side by side."""
    for source, target in (
        (RAW, flat / "raw" / f"{folder.name}.json"),
        (SUMMARY, flat / "reports" / f"{folder.name}_summary.txt"),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / source, target)


# The process that the training starts ends at once, so that the training has no child left. A grandchild goes on.
_PROGRAM = """
import os, sys
if os.fork():
    os._exit(0)
sys.path.append(sys.argv[1])
from rlprof.report.files import main
main(sys.argv[2:])
"""


def main(words: list[str]) -> None:
    """Runs in the other process."""
    os.nice(10)
    gc.disable()  # this process ends soon
    try:
        written = write_here(Path(words[0]), [Path(word) for word in words[1:]])
    except Exception as error:
        written = Written(Verdict(), f"{type(error).__name__}: {error}")
    os.write(1, msgspec.json.encode(written))


def _write_elsewhere(folder: Path, flat_folders: Sequence[Path], deadline: float) -> Written | None:
    """None if it takes longer than there is time to wait."""
    root = str(Path(__file__).parents[2])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RLPROF")}
    reading, writing = os.pipe()
    try:
        try:
            # Not in the working directory of the training: a file there could shadow a module.
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, root, str(folder), *map(str, flat_folders)],
                stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.DEVNULL,
                env=environment, cwd=folder, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(writing)
        process.wait()
        answer = _read(reading, max(deadline, time.monotonic() + LEAST_PATIENCE))
    except OSError as error:
        return Written(Verdict(), str(error))
    finally:
        os.close(reading)
    if answer is None:
        return None
    try:
        return msgspec.json.decode(answer, type=Written)
    except msgspec.DecodeError:
        return Written(Verdict(), "the process that writes them ended early")


def _read(file: int, deadline: float) -> bytes | None:
    """Everything up to the end of the file; None if that does not come in time."""
    parts: list[bytes] = []
    while select.select([file], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(file, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None
