"""No path of the server leads out of the folder: not by dots, slashes, links, or names that a session holds."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from serving import Client, data_in, recorded, serving
from sessions import INFO, Written

from rlprof.errors import UnreadableError
from rlprof.serve.files import open_inside
from rlprof.serve.runs import Runs
from rlprof.session.process import identity_of

SECRET = b"secret of the user"

OUTSIDE = [
    "..", ".", "", "../private.txt", "../../private.txt", "..%2fprivate.txt", "%2e%2e/private.txt",
    "..%2f..%2fprivate.txt", "%2e%2e%2f%2e%2e%2fprivate.txt", "..%5c..%5cprivate.txt", "..%252f..%252fprivate.txt",
    "/etc/passwd", "%2fetc%2fpasswd", "....//....//private.txt", "x/../../../private.txt", "%00", "raw.json%00.txt",
    "..%c0%af..%c0%afprivate.txt", "link.txt", "folder/private.txt", "traces", "pipe", "missing",
]  # fmt: skip


@pytest.fixture(scope="module")
def trapped(run: Path) -> Path:
    """The run, with links that lead out of it, and a pipe that nobody writes."""
    (run / "link.txt").symlink_to(run.parent.parent / "private.txt")
    (run / "folder").symlink_to(run.parent.parent)
    (run / "traces").mkdir(exist_ok=True)
    os.mkfifo(run / "pipe")
    return run


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_leads_nowhere_but_into_its_run(client, trapped, name):
    run = trapped.name
    for path in (
        f"/run/{run}/file/{name}", f"/run/{run}/trace/{name}", f"/perfetto/trace/{run}/{name}", f"/perfetto/{name}",
        f"/run/{name}", f"/run/{name}/report.html", f"/run/{name}/file/private.txt", f"/asset/{name}/style.css",
        f"/compare?a={name}&b={run}", f"/{name}",
    ):  # fmt: skip
        answer = client.get(path)
        assert SECRET not in answer.body, path
        assert b"root:" not in answer.body, path
        assert answer.status in (200, 303, 404), path
        if answer.status == 200:
            assert name in ("", ".", ".."), path
        if answer.status == 303:
            assert answer.headers["location"].startswith("/perfetto/#!/?url=http"), path


def test_a_file_of_a_run_is_downloaded_as_it_is(client, run):
    answer = client.get(f"/run/{run.name}/file/raw.json")
    assert answer.body == (run / "raw.json").read_bytes()
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "sandbox"


@pytest.mark.parametrize(
    "path", ["", "/", "a//b", "./a", "a/..", "a\\b", "a\0b", "link", "inner/link", "inner", "x" * 5000]
)
def test_only_regular_files_inside_are_opened(tmp_path, path):
    (tmp_path / "outside").write_text("secret")
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "inner" / "link").symlink_to("../../outside")
    (folder / "inner" / "file").write_text("text")
    with pytest.raises(UnreadableError, match="no such file"):
        open_inside(folder, path)
    file, size = open_inside(folder, "inner/file")
    with file:
        assert (file.read(), size) == (b"text", 4)


def test_a_run_behind_a_link_is_no_run(tmp_path):
    elsewhere = recorded(tmp_path / "elsewhere", "hidden")
    runs = tmp_path / "runs"
    own = recorded(runs, "own")
    (runs / "linked_20260101-000000").symlink_to(elsewhere)
    copied = runs / "copied_20260101-000000"
    copied.mkdir()
    (copied / "session.db").symlink_to(elsewhere / "session.db")
    found, missing = Runs(runs).scan(60)
    assert ([run.folder for run in found], missing) == ([own.name], 0)
    for name in ("linked_20260101-000000", "copied_20260101-000000", "..", ".", "", "a/b", "x\0", elsewhere.name):
        with pytest.raises(UnreadableError, match="There is no run"):
            Runs(runs).folder(name)
    assert Runs(runs).folder(own.name) == own.resolve()


def test_names_of_files_that_a_session_holds_are_only_names(tmp_path):
    run = recorded(tmp_path / "runs", "files")
    (tmp_path / "private.txt").write_bytes(SECRET)
    names = ["../../private.txt", "/etc/passwd", "<img src=x>.json", "javascript:alert(1)", "..\\x", "a\nb"]
    connection = sqlite3.connect(run / "session.db")
    for place, name in enumerate(names):
        kind = "torch_trace" if place % 2 else "functions"
        connection.execute("INSERT INTO artifact (path, kind, time) VALUES (?, ?, ?)", (name, kind, place))
    connection.commit()
    connection.close()
    with serving(tmp_path / "runs") as served:
        client = Client(served).log_in()
        page = client.get(f"/run/{run.name}").text
        assert "<img" not in page
        links = [part.partition('"')[0] for part in page.split('href="')[1:]]
        own = [link for link in links if link.startswith(("/run/", "#", "/asset/", "/"))]
        assert [link for link in links if link not in own] == ["data:,"]
        for name in names:
            for kind in ("file", "trace"):
                place = "/".join(quote(part, safe="") for part in name.split("/"))
                answer = client.get(f"/run/{run.name}/{kind}/{place}")
                assert answer.status in (303, 404)
                assert SECRET not in answer.body
            assert client.get(f"/perfetto/trace/{run.name}/{quote(name, safe='')}").status == 404


def test_a_run_that_is_deleted_while_it_is_shown_is_one_sentence(tmp_path):
    run = recorded(tmp_path, "gone")
    recorded(tmp_path, "stays")
    with serving(tmp_path) as served:
        client = Client(served).log_in()
        assert client.get(f"/run/{run.name}").status == 200
        shutil.rmtree(run)
        for path in (f"/run/{run.name}", f"/run/{run.name}/events", f"/run/{run.name}/report.html"):
            answer = client.get(path)
            assert answer.status == 404
            assert "There is no run gone_" in answer.text
        rows = data_in(client.get("/").text, "runs-data")
        assert [row["name"] for row in rows["rows"]] == ["stays"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b"no database" * 99, "not an SQLite file"), (b"SQLite format 3\0" + b"x" * 9000, "")],
)
def test_a_run_that_cannot_be_read_says_why(tmp_path, content, said):
    damaged = tmp_path / "damaged_20260101-000000"
    damaged.mkdir()
    (damaged / "session.db").write_bytes(content)
    with serving(tmp_path) as served:
        client = Client(served).log_in()
        answer = client.get(f"/run/{damaged.name}")
        assert answer.status == 404
        assert said in answer.text
        assert "Traceback" not in answer.text
        (row,) = data_in(client.get("/").text, "runs-data")["rows"]
        assert row["state"] == "unreadable"
        assert said in row["problem"]


def test_a_run_of_a_newer_rlprof_says_so(tmp_path):
    run = recorded(tmp_path, "newer")
    connection = sqlite3.connect(run / "session.db")
    connection.execute("PRAGMA user_version = 999")
    connection.commit()
    connection.close()
    with serving(tmp_path) as served:
        client = Client(served).log_in()
        assert "newer rlprof" in client.get(f"/run/{run.name}").text
        (row,) = data_in(client.get("/").text, "runs-data")["rows"]
        assert "newer rlprof" in row["problem"]


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
@pytest.mark.parametrize("name", ["session.db-journal", "session.db-wal", "session.db"])
def test_a_session_with_a_file_that_is_no_plain_file_is_refused_at_once(tmp_path, name, kind):
    """Opening a pipe would wait for its writer for ever, within SQLite, which Ctrl-C does not end."""
    folder = recorded(tmp_path / "runs", "trap")
    trap = folder / name
    trap.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(trap)
    elif kind == "folder":
        trap.mkdir()
    else:
        trap.symlink_to(tmp_path / "elsewhere")
        (tmp_path / "elsewhere").write_bytes(b"x")
    script = "import sys; from rlprof.session.reader import Session; Session(sys.argv[1])"
    path = folder / "session.db" if name == "session.db" else folder
    done = subprocess.run([sys.executable, "-c", script, path], check=False, timeout=60, capture_output=True, text=True)
    sentence = f"{name} is a {kind}" + (" or a device" if kind == "pipe" else "")
    expected = f"without a session.db|{sentence}" if (name, kind) == ("session.db", "folder") else sentence
    assert re.search(expected, done.stderr), done.stderr


def test_perfetto_gets_the_traces_that_a_session_lists_and_nothing_else(tmp_path):
    first, second = recorded(tmp_path, "first"), recorded(tmp_path, "second")
    for run in (first, second):
        for name in ("trace.json", "functions.json"):
            (run / name).write_text("{}")
        connection = sqlite3.connect(run / "session.db")
        kinds = [("trace.json", "torch_trace"), ("functions.json", "functions"), ("../x/session.db", "torch_trace")]
        connection.executemany("INSERT INTO artifact (path, kind, time) VALUES (?, ?, 1)", kinds)
        connection.commit()
        connection.close()
    with serving(tmp_path) as served:
        client = Client(served).log_in()
        assert client.get(f"/perfetto/trace/{first.name}/trace.json").status == 200
        for name in ("session.db", "functions.json", f"../{second.name}/session.db", "../x/session.db", "raw.json"):
            for run in (first, second):
                assert client.get(f"/perfetto/trace/{run.name}/{name}").status == 404
                assert client.get(f"/perfetto/trace/{run.name}/{quote(name, safe='')}").status == 404


@pytest.mark.parametrize("what", ["session.db", "folder"])
def test_a_session_that_becomes_a_link_while_its_page_is_open_is_read_no_more(tmp_path, what):
    private, run = recorded(tmp_path / "private", "secret"), tmp_path / "runs" / "open"
    written = Written(run)
    written.work("env_step", 1_000)
    written.flush()
    here = {"host": os.uname().nodename, "pid": os.getpid(), "process": identity_of(os.getpid()) or ""}
    written.writer.describe(replace(INFO, **here))
    written.writer.close()
    with serving(tmp_path / "runs") as served:
        client = Client(served).log_in()
        events = client.events(f"/run/{run.name}/events")
        assert next(events)[0] in ("frame", "report")
        if what == "folder":
            run.rename(tmp_path / "moved")
            run.symlink_to(private)
        else:
            (run / "session.db").rename(tmp_path / "moved.db")
            (run / "session.db").symlink_to(private / "session.db")
        found = list(events)
    assert "secret" not in str(found)
    assert found[-1][0] == "end"
    frames = [content for name, content in found if name == "frame"]
    assert "is not a plain file in its folder any more" in frames[-1]["problem"]
    assert not frames[-1]["running"]
