"""What a run leaves for people beside its session: raw.json, summary.txt, and both in a flat layout when asked.

Making them takes about a fifth of a millisecond per operation, and a training that is told to end has some ten seconds.
So of a large session another process makes them, which may go on when the training has ended.
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
from pathlib import Path

import msgspec

from rlprof.analysis.report import Report, build_report
from rlprof.render.names import literal, shorten
from rlprof.report.headline import sentences
from rlprof.report.json import to_json
from rlprof.report.text import to_text
from rlprof.session.folder import DATABASE, write_private
from rlprof.session.reader import Session

RAW = "raw.json"
SUMMARY = "summary.txt"

SMALL = 1 << 20
"""Bytes of session.db: some thousand operations. Up to there, starting another process takes longer than the files."""

LEAST_PATIENCE = 0.5
"""Seconds that the end of a run waits for the other process, however long it has taken already."""

Warn = Callable[[str, BaseException | None], None]


class Made(msgspec.Struct):
    """What the other process answers."""

    lines: list[str]
    error: str = ""


def leave_files(folder: Path, flats: Sequence[Path], warn: Warn, deadline: float) -> list[str]:
    """Make the files, and those in the flat layouts. Returns what the run says of itself when it ends."""
    small = (folder / DATABASE).stat().st_size <= SMALL
    made = make(folder, flats) if small else _made_elsewhere(folder, flats, deadline)
    if made is None:
        return [
            f"{RAW} and {SUMMARY} of this large session are still being made by another process; "
            "`rlprof report` shows the same."
        ]
    if made.error:
        warn(f"{RAW} and {SUMMARY} could not be made in {folder}; `rlprof report` makes them: {made.error}", None)
    return made.lines


def make(folder: Path, flats: Sequence[Path]) -> Made:
    with Session(folder) as session:
        report = build_report(session)
    made = Made([literal(sentence) for sentence, _ in sentences(report, lambda name: shorten(name, 40))])
    try:
        write_files(folder, report)
        for flat in flats:
            leave_flat(folder, flat)
    except OSError as error:
        made.error = str(error)
    return made


def write_files(folder: Path, report: Report) -> None:
    """raw.json, which is the JSON report, and summary.txt, which is the text report."""
    write_private(folder / RAW, to_json(report).encode())
    write_private(folder / SUMMARY, to_text(report).encode())


def leave_flat(folder: Path, flat: Path) -> None:
    """The same as raw/NAME_TIMESTAMP.json and reports/NAME_TIMESTAMP_summary.txt, all runs side by side."""
    for source, target in (
        (RAW, flat / "raw" / f"{folder.name}.json"),
        (SUMMARY, flat / "reports" / f"{folder.name}_summary.txt"),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / source, target)


# The first line ends the process that the training has started, so that none of its children is left; what goes on is
# nobody's child.
_PROGRAM = """
import os, sys
if os.fork():
    os._exit(0)
sys.path.append(sys.argv[1])
from rlprof.recording.outputs import main
main(sys.argv[2:])
"""


def main(words: list[str]) -> None:
    """In the other process."""
    os.nice(10)
    gc.disable()  # it ends soon
    try:
        made = make(Path(words[0]), [Path(word) for word in words[1:]])
    except Exception as error:
        made = Made([], f"{type(error).__name__}: {error}")
    os.write(1, msgspec.json.encode(made))


def _made_elsewhere(folder: Path, flats: Sequence[Path], deadline: float) -> Made | None:
    """None where it takes longer than there is time to wait."""
    root = str(Path(__file__).parents[2])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RLPROF")}
    reading, writing = os.pipe()
    try:
        try:
            # Not from the folder that the training is in: a file there could hide a module.
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, root, str(folder), *map(str, flats)],
                stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.DEVNULL,
                env=environment, cwd=folder, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(writing)
        process.wait()
        answer = _read(reading, max(deadline, time.monotonic() + LEAST_PATIENCE))
    except OSError as error:
        return Made([], str(error))
    finally:
        os.close(reading)
    if answer is None:
        return None
    try:
        return msgspec.json.decode(answer, type=Made)
    except msgspec.DecodeError:
        return Made([], "the process that makes them has ended early")


def _read(file: int, deadline: float) -> bytes | None:
    """Everything up to its end; None if that does not come in time."""
    parts: list[bytes] = []
    while select.select([file], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(file, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None
