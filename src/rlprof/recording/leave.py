"""What a run leaves for people beside its session: raw.json, summary.txt, and both in a flat layout when asked."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlprof.analysis.report import build_report
from rlprof.report.json import to_json
from rlprof.report.text import to_text
from rlprof.session.reader import Session

RAW = "raw.json"
SUMMARY = "summary.txt"


def leave_files(folder: Path) -> None:
    """raw.json, which is the JSON report, and summary.txt, which is the text report."""
    with Session(folder) as session:
        report = build_report(session)
    (folder / RAW).write_text(to_json(report), encoding="utf-8")
    (folder / SUMMARY).write_text(to_text(report), encoding="utf-8")


def leave_flat(folder: Path, flat: Path) -> None:
    """The same as raw/NAME_TIMESTAMP.json and reports/NAME_TIMESTAMP_summary.txt, all runs side by side."""
    for source, target in (
        (RAW, flat / "raw" / f"{folder.name}.json"),
        (SUMMARY, flat / "reports" / f"{folder.name}_summary.txt"),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / source, target)
