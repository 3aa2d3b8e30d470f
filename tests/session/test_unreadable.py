"""Anything that cannot be read is refused in one sentence."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import change, refused
from sessions import Written, report_of, rlprof, sample

from rlprof.analysis.load import load_facts
from rlprof.analysis.report import SCHEMA_VERSION, Report, find
from rlprof.errors import UnreadableError
from rlprof.report.json import to_json
from rlprof.report.markdown import to_markdown
from rlprof.report.text import to_text
from rlprof.session.reader import Session


@pytest.fixture(scope="module")
def session(tmp_path_factory) -> Path:
    written = Written(tmp_path_factory.mktemp("run"))
    written.fake.profiler.ledger.timeline(64)
    for _ in range(5):
        with written.fake.profiler.iteration():
            with written.fake.profile("rollout"):
                written.work("env_step", 1_000)
                written.work("policy_forward", 500, track_memory=True)
            written.work("update", 700)
            written.fake.profiler.add_steps(8)
    written.samples = [sample(1), sample(2)]
    return written.end()


@pytest.fixture(scope="module")
def report(session) -> dict:
    return json.loads(to_json(report_of(session)))


def test_a_missing_file_and_a_folder_that_is_no_session(tmp_path):
    refused(tmp_path / "nowhere", because="does not exist")
    refused(tmp_path, because=r"without a session\.db")


def test_no_session_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("RLPROF_DIR", str(tmp_path))
    refused("last", because="there is no session in")


@pytest.mark.parametrize("name", ["session.db", "report.json"])
def test_an_empty_file(name, tmp_path):
    (tmp_path / name).write_bytes(b"")
    refused(tmp_path / name, because="is empty|is not JSON")


@pytest.mark.parametrize("kept", [10, 100, 1_000, 5_000, 20_000])
def test_a_truncated_session(kept, session, tmp_path):
    (tmp_path / "session.db").write_bytes(session.read_bytes()[:kept])
    refused(tmp_path / "session.db", because="so no session|cannot be read|damaged")


def test_text_that_is_neither_session_nor_report(tmp_path):
    (tmp_path / "notes.txt").write_text("env_step took long")
    refused(tmp_path / "notes.txt", because="not an SQLite file")


def test_an_sqlite_file_of_another_program(tmp_path):
    change(tmp_path / "other.db", "CREATE TABLE users (name)")
    refused(tmp_path / "other.db", because="not an rlprof session")


@pytest.mark.parametrize(
    ("statement", "because"),
    [
        ("UPDATE node SET calls = 'many'", "table node"),
        ("UPDATE node SET ledger = ledger + 1 WHERE id = 1", "accounts sum to"),
        ("UPDATE node SET parent = 9 WHERE id = 1", "is not part of a tree"),
        ("UPDATE node SET lane = 7", "is not part of a tree"),
        ("UPDATE node SET self = 9000000000000000000", "table node"),
        ("UPDATE node SET histogram = x'0102'", "it is cut"),
        ("UPDATE node SET histogram = x'ffff0100000000000000' WHERE id = 1", "bucket that does not exist"),
        ("UPDATE node SET busy = -1", "table node"),
        ("DELETE FROM lane", "is not part of a tree"),
        ("DELETE FROM operation", "has no operation"),
        ("DELETE FROM session WHERE key = 'info'", "has no description of the run"),
        ("DELETE FROM session WHERE key = 'state'", "before its first flush"),
        ("UPDATE session SET value = '[1, 2]' WHERE key = 'info'", "info"),
        ("UPDATE session SET value = replace(value, 'python', x'ff') WHERE key = 'info'", "UTF-8|info"),
        ("UPDATE iteration SET start = 'noon'", "table iteration"),
        ("UPDATE gain SET self = 1e300", "table gain"),
        ("UPDATE sample SET cpu = 9e999", "table sample"),
        ("DROP TABLE gain", "cannot be read"),
        ("PRAGMA user_version = 99", "newer rlprof"),
    ],
)  # fmt: skip
def test_a_damaged_session(statement, because, session, tmp_path):
    copy = Path(shutil.copy(session, tmp_path / "session.db"))
    change(copy, statement)
    refused(copy, because=because)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("{", "not JSON"),
        ("[]", "not what"),
        ("null", "not what"),
        ("{}", "schema_version"),
        ('{"schema_version": "1"}', "schema_version"),
        ('{"schema_version": 3, "facts": {}}', "version 3, .*update rlprof"),
        ('{"schema_version": 1, "facts": {}}', "version 1, .*make it again from the session"),
        ('{"schema_version": 2}', "facts"),
        ('{"schema_version": 2, "facts": 3}', "facts"),
        ('{"schema_version": 1e400}', "not JSON|not what"),
        ("[" * 100_000, "nested|not JSON|not what"),
        ('{"schema_version": 2, "facts": "\udcff"}', "not JSON|not what"),
    ],
)  # fmt: skip
def test_json_that_is_no_report(text, because, tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(path, because=because)


@pytest.mark.parametrize(
    ("place", "value", "because"),
    [
        (("breakdown", "wall_ns"), 10**30, "not what|damaged"),
        (("breakdown", "wall_ns"), -1, "damaged"),
        (("breakdown", "wall_ns"), 17, "sum to"),
        (("breakdown", "rows", 0, "depth"), 3, "depth"),
        (("breakdown", "rows"), [], "unattributed"),
        (("operations", 0, "calls"), "4", "calls|operations"),
        (("operations", 0, "calls"), 2**63, "calls"),
        (("operations", 0, "mean_ns"), 1e300, "mean_ns"),
        (("operations", 0, "histogram"), {"70000": 1}, "bucket"),
        (("series", "steps"), [1], "different lengths"),
        (("resources", "samples", "rss"), [], "different lengths"),
        (("session", "name"), 5, "name"),
    ],
)
def test_a_report_with_wrong_values(place, value, because, report, tmp_path):
    changed = json.loads(json.dumps(report))
    target = changed["facts"]
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    path = tmp_path / "report.json"
    path.write_text(json.dumps(changed))
    refused(path, because=because)


def places(value: object, place: tuple = ()) -> list[tuple]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place] + [deeper for key, item in inside for deeper in places(item, (*place, key))]


odd = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=9),
    st.just([]), st.just({}), st.sampled_from([2**62, 2**63, 2**64, -1, 1e308, -0.0, "<b>"]),
)  # fmt: skip


def renders_or_refuses(path: Path) -> None:
    """Any file gives a report or one sentence, and no other exception."""
    refusal = ""
    try:
        facts = load_facts(path)
    except UnreadableError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        return
    report = Report(SCHEMA_VERSION, facts, find(facts))
    for render in (to_text, to_json, to_markdown):
        assert render(report)


@pytest.mark.long
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_report_with_anything_in_it_is_shown_or_refused(data, report, tmp_path):
    changed = json.loads(json.dumps(report))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places(changed)))
        if not place:
            changed = {}
            break
        target = changed
        for key in place[:-1]:
            target = target[key]
        if data.draw(st.booleans()) and isinstance(target, dict):
            del target[place[-1]]
        else:
            target[place[-1]] = data.draw(odd)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(changed))
    renders_or_refuses(path)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode())))
def test_any_bytes_are_refused_as_json(content, tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(content)
    renders_or_refuses(path)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_session_with_flipped_bytes_is_shown_or_refused(data, session, tmp_path):
    content = bytearray(session.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "session.db"
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))] if data.draw(st.booleans()) else content)
    renders_or_refuses(path)


@pytest.mark.long
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_session_with_anything_in_its_cells_is_shown_or_refused(data, session, tmp_path):
    path = Path(shutil.copy(session, tmp_path / "session.db"))
    # A draw may end the example: then, too, the connection is closed.
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # the speed of the disk is no part of the test
        tables = ("session", "operation", "lane", "node", "iteration", "gain", "sample", "timeline")
        for _ in range(data.draw(st.integers(1, 3))):
            table = data.draw(st.sampled_from(tables))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            column = data.draw(st.sampled_from(columns))
            value = data.draw(
                st.one_of(
                    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=5), st.binary(max_size=5)
                )
            )
            offset = data.draw(st.integers(0, 4))
            key = columns[0]
            chosen = connection.execute(f"SELECT {key} FROM {table} LIMIT 1 OFFSET {offset}").fetchone()
            try:
                if chosen is not None:
                    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} IS ?", (value, chosen[0]))
            except (sqlite3.Error, UnicodeEncodeError):
                continue  # SQLite itself refuses it
        connection.commit()
    renders_or_refuses(path)


def test_a_session_on_a_read_only_disk_is_read(session, tmp_path):
    shutil.copy(session, tmp_path / "session.db")
    os.chmod(tmp_path, 0o555)
    try:
        assert load_facts(tmp_path).progress.iterations == 5
    finally:
        os.chmod(tmp_path, 0o755)


@pytest.mark.parametrize("command", ["report", "analyze", "export"])
def test_the_command_line_prints_one_line_and_exits_2(command, tmp_path):
    (tmp_path / "broken.json").write_text('{"schema_version": 2, "facts": {}}')
    arguments = ["--to", "chrome"] if command == "export" else []
    done = rlprof(command, tmp_path / "broken.json", *arguments, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("rlprof: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["report.json", "report.json.gz"])
def test_a_report_in_place_of_a_session_is_named(name, tmp_path):
    content = b'{"schema_version": 2}' * 100
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(UnreadableError, match=r"is a report's JSON\. This command needs the session"):
        Session(tmp_path / name)
