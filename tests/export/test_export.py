"""`rlprof export`, run as a user would."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import stat
from pathlib import Path

import pytest
from sessions import rlprof
from timelines import SPANS, Kept, training

from rlprof.cli.export import FORMATS, TABLES
from rlprof.cli.main import main
from rlprof.render import spreadsheet

PAGE = (Path(__file__).parent.parent.parent / "docs" / "export.md").read_text()


@pytest.fixture
def run(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as exit:
            main(["export", *map(str, arguments)])
        out, err = capsys.readouterr()
        return exit.value.code, out, err

    return run


@pytest.fixture
def session(tmp_path):
    folder = tmp_path / "run_20260101-000000"
    training(folder).close()
    return folder


def needs(format_):
    if format_ == "tensorboard":
        pytest.importorskip("tensorboard")


@pytest.mark.parametrize(
    ("format_", "names"),
    [
        ("chrome", ["export.json"]),
        ("speedscope", ["export.speedscope.json"]),
        ("csv", ["operations.csv"]),
        ("tensorboard", ["tensorboard"]),
        ("otlp-json", ["export.otlp.json", "export.otlp.traces.json"]),
    ],
)
def test_the_result_lies_in_the_sessions_folder_and_its_path_is_printed(run, session, format_, names):
    needs(format_)
    code, out, err = run(session, "--to", format_)
    assert (code, err) == (0, "")
    assert out == "".join(f"wrote {session / name}\n" for name in names)
    assert {path.name for path in session.iterdir()} == {"session.db", *names}
    assert all(f"`{name}`" in PAGE or f"`{name}/`" in PAGE for name in names)


def test_last_is_the_newest_session(run, session, monkeypatch):
    monkeypatch.setenv("RLPROF_DIR", str(session.parent))
    assert run("last", "--to", "csv")[0] == 0
    assert (session / "operations.csv").exists()


@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_its_file(run, session, table):
    assert run(session, "--to", "csv", "--table", table)[0] == 0
    assert (session / f"{table}.csv").read_text().count("\n") > 2


def test_the_tables_are_those_there_are():
    assert tuple(spreadsheet.TABLES) == TABLES
    assert all(f"| `{table}` |" in PAGE for table in TABLES)
    assert all(f"\n## {format_}\n" in PAGE for format_ in FORMATS)


def test_a_name_that_ends_in_gz_is_compressed(run, session, tmp_path):
    output = tmp_path / "new" / "folder" / "trace.json.gz"
    assert run(session, "--to", "chrome", "--output", output)[0] == 0
    made = json.loads(gzip.decompress(output.read_bytes()))
    assert sum(event["ph"] == "X" for event in made["traceEvents"]) == SPANS + 3
    assert run(session, "--to", "otlp-json", "--output", tmp_path / "m.json.gz")[1].endswith("m.traces.json.gz\n")
    assert run(session, "--to", "otlp-json", "--output", tmp_path / "metrics")[1].endswith("metrics.traces\n")


@pytest.mark.parametrize("format_", ["chrome", "speedscope", "otlp-json"])
def test_what_is_missing_is_one_line_on_stderr(run, tmp_path, format_):
    training(tmp_path / "a", timeline=0).close()
    code, out, err = run(tmp_path / "a", "--to", format_)
    assert code == 0
    assert out.count("\n") == err.count("\n") == 1
    assert "record(timeline=" in err
    kept = Kept(tmp_path / "b", timeline=2)
    for _ in range(10):
        kept.work("env_step", 1)
    kept.end()
    _, _, err = run(tmp_path / "b", "--to", format_)
    assert err.startswith("note: 8 of 10 spans are missing")
    assert err.count("\n") == 1


@pytest.mark.parametrize("format_", FORMATS)
def test_what_cannot_be_written_is_one_sentence(run, session, tmp_path, format_):
    needs(format_)
    (tmp_path / "file").write_text("mine")
    code, out, err = run(session, "--to", format_, "--output", tmp_path / "file" / "below")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"rlprof: \S+ cannot be written: [^\n]+\n", err)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("format_", [name for name in FORMATS if name != "tensorboard"])
def test_neither_a_folder_nor_the_session_is_overwritten(run, session, format_):
    before = (session / "session.db").read_bytes()
    code, _, err = run(session, "--to", format_, "--output", session / "session.db")
    assert code == 2
    assert "would overwrite" in err
    assert run(session, "--to", format_, "--output", session)[0] == 2
    assert (session / "session.db").read_bytes() == before
    assert [path.name for path in session.iterdir()] == ["session.db"]


def test_a_failed_export_leaves_the_old_file(run, session, monkeypatch):
    output = session / "export.json"
    output.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rlprof.export.chrome.write_items", fail)
    assert run(session, "--to", "chrome")[0] == 2
    assert output.read_text() == "old"
    assert {path.name for path in session.iterdir()} == {"session.db", "export.json"}


def test_the_umask_decides_who_may_read_a_file(run, session):
    before = os.umask(0o022)
    try:
        run(session, "--to", "chrome")
    finally:
        os.umask(before)
    assert stat.S_IMODE((session / "export.json").stat().st_mode) == 0o644


def test_a_pipe_is_written_to_as_it_is(session):
    done = rlprof("export", session, "--to", "csv", "--output", "/dev/stdout")
    assert done.stdout.startswith("operation,category,")


def test_a_link_stays_one(run, session, tmp_path):
    (tmp_path / "target.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("target.csv")
    assert run(session, "--to", "csv", "--output", tmp_path / "link.csv")[0] == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "target.csv").read_text().startswith("operation,category,")


def test_wrong_use_is_exit_code_2(run, session, tmp_path):
    assert run(session)[0] == 2
    assert run(session, "--to", "pdf")[0] == 2
    code, _, err = run(session, "--to", "chrome", "--table", "tree")
    assert code == 2
    assert "--table needs --to csv" in err
    code, _, err = run(tmp_path / "nothing", "--to", "csv")
    assert code == 2
    assert err.count("\n") == 1


def test_every_command_of_the_page_runs(run, session, monkeypatch, tmp_path):
    pytest.importorskip("tensorboard")
    monkeypatch.setenv("RLPROF_DIR", str(session.parent))
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        rlprof, command, *arguments = shlex.split(line)
        assert (rlprof, command) == ("rlprof", "export")
        code, _, err = run(*arguments)
        assert (code, err) == (0, ""), line


def test_the_format_follows_from_the_name_of_the_file(run, session, tmp_path):
    assert run(session, "-o", tmp_path / "x.csv.gz")[0] == 0
    assert gzip.decompress((tmp_path / "x.csv.gz").read_bytes()).startswith(b"operation,")
    assert run(session, "-o", tmp_path / "x.json")[0] == 2
