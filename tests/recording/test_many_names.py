"""A run with very many names ends quickly, and its report takes no longer per name than that of a small run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest
from sessions import Written, report_of, rlprof

from rlprof import Profiler, record
from rlprof.report import files
from rlprof.report.json import to_json
from rlprof.report.text import to_text
from rlprof.session.reader import Session


def lines_of(function, *arguments, below: str = "") -> int:
    """Number of Python lines that run in files whose path contains `below`. It is the same on every machine."""
    lines = 0

    def trace(frame, event, _argument):
        nonlocal lines
        if event == "call":
            return trace if below in frame.f_code.co_filename else None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return lines


def wide(folder: Path, names: int) -> Path:
    written = Written(folder)
    with written.fake.profiler.iteration():
        for place in range(names):
            written.work(f"name_{place}", 5)
    return written.end()


def deep(folder: Path, names: int) -> Path:
    written = Written(folder)
    spans = [written.fake.profile(f"name_{place}") for place in range(names)]
    for span in spans:
        span.__enter__()
        written.fake.tick(5)
    for span in reversed(spans):
        span.__exit__(None, None, None)
    return written.end()


def everything(path: Path) -> None:
    report = report_of(path)
    to_json(report)
    to_text(report)


@pytest.mark.long
@pytest.mark.parametrize("shape", [wide, deep])
def test_the_work_of_a_report_grows_with_the_names_and_no_faster(shape, tmp_path):
    everything(shape(tmp_path / "first", 50))  # what is imported or made once
    small, large = (lines_of(everything, shape(tmp_path / str(names), names), below="rlprof") for names in (100, 800))
    assert large < 8.5 * small


def many_names(folder: Path) -> tuple[Profiler, object]:
    profiler = Profiler()
    recording = record("many", dir=folder, profiler=profiler)
    for place in range(300):
        with profiler.profile(f"name_{place}"):
            pass
    return profiler, recording


def test_another_process_writes_the_files_of_a_large_session(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SMALL", 0)
    before = psutil.Process().children()  # of other tests: a server for forks stays until the end
    _, recording = many_names(tmp_path)
    recording.flat_folders.append(tmp_path / "flat")
    assert lines_of(recording.stop, below="rlprof/analysis") == 0
    assert recording.verdict.sentences[1].startswith("Most time: ")
    with Session(recording.folder) as session:
        assert session.end.how == "finished"
    made = (recording.folder / files.RAW).read_text()
    assert made == to_json(report_of(recording.folder))
    assert (tmp_path / "flat" / "raw" / f"{recording.folder.name}.json").read_text() == made
    assert psutil.Process().children() == before


def test_the_end_of_a_run_does_not_wait_for_slow_files(tmp_path, monkeypatch):
    """The other process waits until the test lets it go on. The end of the run does not wait for it."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    monkeypatch.setattr(files, "SMALL", 0)
    monkeypatch.setattr(files, "LEAST_PATIENCE", 0.0)
    monkeypatch.setattr("rlprof.recording.recording.END_SECONDS", 0.0)
    monkeypatch.setattr(
        files, "_PROGRAM", files._PROGRAM.replace("from rlprof", f"open({str(gate)!r}).read()\nfrom rlprof")
    )
    _, recording = many_names(tmp_path / "runs")
    recording.stop()
    assert not (recording.folder / files.RAW).exists()
    assert recording.verdict.pending
    gate.write_bytes(b"go")
    until = time.monotonic() + 60
    while not (recording.folder / files.SUMMARY).exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert (recording.folder / files.RAW).exists()


def test_a_report_writes_the_files_that_are_missing(tmp_path):
    _, recording = many_names(tmp_path)
    recording.stop()
    made = (recording.folder / files.RAW).read_bytes()
    for name in (files.RAW, files.SUMMARY):
        (recording.folder / name).unlink()
    rlprof("report", recording.folder)
    assert (recording.folder / files.RAW).read_bytes() == made
    assert (recording.folder / files.SUMMARY).exists()
