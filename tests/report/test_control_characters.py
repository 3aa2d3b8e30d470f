"""Names with control characters: none reaches a terminal or a file that people look at."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest
from sessions import Written, report_of
from traces import event, written

from rlprof.render.spreadsheet import to_csv
from rlprof.report import analyzer
from rlprof.report.html.document import to_html
from rlprof.report.json import to_json
from rlprof.report.markdown import to_markdown
from rlprof.report.text import to_text
from rlprof.trace.analysis.diff import compare
from rlprof.trace.analysis.per_step import steps_of
from rlprof.trace.analysis.summarize import summarize
from rlprof.trace.analysis.summary import SCHEMA_VERSION, Summary
from rlprof.trace.read import read_trace
from rlprof.trace.render import diff, html, text

MS = 1_000_000
NAME = "a\x1b[31m\x07\x9b2J\x7f\r\u202eb"


@pytest.fixture
def session(tmp_path):
    run = Written(tmp_path)
    for _ in range(3):
        with run.fake.profiler.iteration():
            run.work(NAME, 200 * MS)
            run.work("env_step", 100 * MS)
    return run.end(f"ValueError: {NAME}")


def shown(text):
    """All characters of a text that a terminal would obey."""
    return {char for char in text if not char.isprintable() and char != "\n"}


def test_a_report_has_none_in_any_format(session):
    report = report_of(session)
    for render in (to_text, to_markdown, to_html, to_csv, analyzer.to_text):
        output = render(report)
        # The page's own scripts have some, in texts of their own.
        found = shown(output) & set(NAME) if render is to_html else shown(output)
        assert found == set(), render.__module__
        assert "31m" in output, "the name is shown all the same"


def test_a_trace_has_none_in_any_format(tmp_path):
    events = [event("ProfilerStep#1", 0, 1000, "user_annotation"), event(NAME, 10, 500), event(NAME, 600, 20, NAME)]
    trace = read_trace(written(tmp_path, events))
    found = Summary(SCHEMA_VERSION, (summarize(trace),))
    compared = diff.to_text(compare([steps_of(trace)], [steps_of(trace)]))
    for output in (text.to_text(found), html.to_html(found), compared):
        assert shown(output) == set()


def on_terminal(*words):
    """What the command writes to a terminal, standard error included."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "rlprof", *words], stdout=follower, stderr=follower)
    os.close(follower)
    written = b""
    with suppress(OSError):  # the other end is closed
        while piece := os.read(leader, 65536):
            written += piece
    os.close(leader)
    process.wait(60)
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("format_", ["csv", "json", "markdown"])
def test_a_terminal_gets_none(session, format_):
    assert "\x9b" in to_json(report_of(session)), "JSON itself may hold it"
    text = on_terminal("report", str(session), "--format", format_)
    assert "31m" in text
    assert shown(text) == set()


def test_an_error_about_a_file_with_such_a_name_has_none(tmp_path):
    text = on_terminal("report", str(tmp_path / "no\x1b[31mfile"))
    assert text.startswith("rlprof: ")
    assert shown(text) == set()
