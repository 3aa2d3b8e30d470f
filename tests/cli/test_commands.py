"""The command line as people type it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import time
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest
import sessions
from sessions import Written

from rlprof.cli.main import COMMANDS

MS = 1_000_000


@pytest.fixture(scope="module")
def session(tmp_path_factory) -> Path:
    written = Written(tmp_path_factory.mktemp("runs") / "planted_20260101-120000")
    for _ in range(10):
        with written.fake.profiler.iteration():
            written.work("env_step", 6 * MS)
            written.work("update", 3 * MS)
            written.fake.profiler.add_steps(8)
    return written.end().parent


rlprof = partial(sessions.rlprof, code=None)


@pytest.mark.figures
def test_help_names_every_command_and_answers_at_once():
    began = time.perf_counter()
    shown = rlprof("--help").stdout
    seconds = time.perf_counter() - began
    for command in COMMANDS:
        assert f"  {command} " in shown
    empty = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    assert seconds < 20 * (time.perf_counter() - empty)  # no command's libraries are imported for it


def test_the_version_is_that_of_the_package():
    assert rlprof("--version").stdout == f"rlprof, version {metadata.version('rlprof')}\n"


def test_the_short_form_of_the_version():
    assert rlprof("-V").stdout == rlprof("--version").stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["reprot"], "No such command 'reprot'. Did you mean 'report'?"),
        (["trace", "sumary"], "No such command 'sumary'. Did you mean 'summary'?"),
        (["train", "petry"], "No such workload 'petry'. Did you mean 'petri'?"),
        (["report", "--fromat", "json"], "No such option '--fromat'. Did you mean '--format'?"),
        (["nothing-like-it"], "No such command 'nothing-like-it'."),
    ],
)
def test_a_mistyped_name_is_suggested(arguments, error):
    done = rlprof(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"Error: {error}\n")


@pytest.mark.long
def test_html_is_output_in_the_format_html(session, tmp_path):
    for words in (["--html", tmp_path / "a.htm"], ["--format", "html", "-o", tmp_path / "b"]):
        assert rlprof("report", session, *words).returncode == 0
    assert (tmp_path / "a.htm").read_text() == (tmp_path / "b").read_text()
    for words in (["-o", "b.html"], ["--format", "json"]):
        assert "--html FILE means" in rlprof("report", session, "--html", tmp_path / "a.html", *words).stderr


@pytest.mark.parametrize(
    "arguments", [["repot"], ["report", "--format", "pdf"], ["analyze", "--min-calls", "0"], ["--nope"]]
)
def test_wrong_use_exits_with_2_and_an_error(arguments):
    done = rlprof(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["analyze", "-o", "a.html"], "`rlprof analyze` writes text"),
        (["report", "--full", "--format", "csv"], "--full is for text only."),
    ],
)
def test_what_a_command_cannot_write_is_refused(words, error, session, tmp_path):
    done = rlprof(*words, session, cwd=tmp_path, code=2)
    assert error in done.stderr
    assert list(tmp_path.glob("a.*")) == []


def test_a_dash_is_stdout(session, tmp_path):
    assert rlprof("report", session, "--html", "-", cwd=tmp_path).stdout.startswith("<!DOCTYPE html>")
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("given", [lambda path: path, lambda path: path / "session.db"], ids=["folder", "file"])
def test_a_session_is_its_folder_or_its_file(given, session):
    done = rlprof("report", given(session))
    assert done.returncode == 0
    assert "889 steps/s over 90.0 ms of training (10 iterations)" in done.stdout


@pytest.mark.long
def test_last_is_the_newest_session(session, tmp_path, monkeypatch):
    monkeypatch.setenv("RLPROF_DIR", str(session.parent))
    assert "planted" in rlprof("report", "last").stdout
    assert "planted" in rlprof("report").stdout
    newer = Written(session.parent / "newer_20260101-120001")
    newer.work("render", MS)
    newer.end()
    assert "render" in rlprof("report").stdout


@pytest.mark.long
def test_the_format_follows_the_name_of_the_output(session, tmp_path):
    beginnings = {"r.json": "{", "r.md": "# planted", "r.csv": "operation", "r.txt": "planted", "r.html": "<!"}
    for name, beginning in beginnings.items():
        done = rlprof("report", session, "--output", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).read_text().lstrip().lower().startswith(beginning)
        assert done.stderr == f"wrote {tmp_path / name}\n"


def test_csv_is_csv(session):
    rows = list(csv.DictReader(io.StringIO(rlprof("report", session, "--format", "csv").stdout)))
    assert rows[0]["operation"] == "env_step"
    assert rows[0]["calls"] == "10"


@pytest.mark.long
def test_a_json_report_can_be_reported_and_analysed_again(session, tmp_path):
    rlprof("report", session, "--format", "json", "--output", tmp_path / "report.json")
    text = rlprof("report", session).stdout
    assert rlprof("report", tmp_path / "report.json").stdout == text
    assert rlprof("analyze", "--input", tmp_path / "report.json").stdout == rlprof("analyze", session).stdout


@pytest.mark.long
def test_analyze_writes_the_requested_files(session, tmp_path):
    done = rlprof(
        "analyze", "--input", session, "--output", "analysis.txt",
        "--charts", "performance.png", "--detailed", "detailed.json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "Top 2 bottlenecks" in (tmp_path / "analysis.txt").read_text()
    assert (tmp_path / "performance.png").read_bytes().startswith(b"\x89PNG")
    detailed = json.loads((tmp_path / "detailed.json").read_text())
    assert [item["operation"] for item in detailed["bottlenecks"]] == ["env_step", "update"]
    assert detailed["recommendations"][0]["severity"] == "CRITICAL"


def test_analyze_is_also_a_module(session):
    assert rlprof("--input", session, module="rlprof.analyze").stdout == rlprof("analyze", session).stdout


def test_min_calls_leaves_operations_out(session):
    assert "No operation has enough calls" in rlprof("analyze", session, "--min-calls", "11").stdout


@pytest.mark.parametrize("command", [["report"], ["analyze"]])
def test_an_output_that_cannot_be_written_is_reported_in_one_line(command, session, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = rlprof(*command, session, "--output", tmp_path / "file" / "report.txt")
    assert done.returncode == 2
    assert done.stderr.startswith("rlprof: ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error(session):
    done = subprocess.run(
        f"{sys.executable} -m rlprof report {session} | head -1", shell=True, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("planted")
    assert done.stderr == ""


def test_debug_shows_the_traceback(tmp_path):
    assert "Traceback" not in rlprof("report", tmp_path / "nothing").stderr
    assert "Traceback" in rlprof("--debug", "report", tmp_path / "nothing").stderr


@pytest.mark.long
def test_the_selftest_passes_and_cleans_up(tmp_path):
    done = rlprof("selftest", "--cleanup", "--dir", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
    assert "rlprof works here" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_the_selftest_keeps_its_session_by_default(tmp_path):
    rlprof("selftest", "--dir", tmp_path)
    (session,) = tmp_path.iterdir()
    assert "simulated_data_collection" in rlprof("report", session).stdout


def test_the_selftest_fails_if_no_session_can_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = rlprof("selftest", "--dir", tmp_path / "file")
    assert done.returncode == 1
    assert "FAILED   a session is written" in done.stdout
