"""A session is read as it was recorded."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import msgspec
import pytest
from fakes import CORES, Fake
from hypothesis import HealthCheck, given, settings
from programs import Machine, programs
from sessions import INFO, Written, facts_of, report_of, sample

from rlprof.analysis.breakdown import breakdown
from rlprof.analysis.training import training_part
from rlprof.report.json import to_json
from rlprof.session import schema
from rlprof.session.reader import Session


@pytest.fixture
def written(tmp_path) -> Written:
    return Written(tmp_path)


@pytest.mark.parametrize("core", CORES)
def test_a_session_holds_the_snapshot_it_was_flushed_from(core, tmp_path):
    written = Written(tmp_path, Fake(core, start=0))
    with written.fake.profile("update"):
        written.work("backward", 700)
        written.fake.tick(300)
    written.fake.tick(50)
    expected = written.fake.snapshot()
    path = written.end()
    with Session(path) as session:
        read = session.snapshot()
        assert session.info == INFO
        assert session.end is not None
        assert session.end.how == "finished"
    assert read.accounts == expected.accounts
    assert read.nodes == expected.nodes
    assert read.lanes == expected.lanes
    assert (read.wall_ns, read.unattributed_ns) == (1050, 50)


def test_only_what_changed_is_written_again(written):
    written.work("env_step", 10)
    written.work("render", 10)
    written.flush()
    changes = written.writer._connection.total_changes
    written.work("render", 5)
    written.flush()
    # One node and its lane, whose root with no time of its own stays; and the state and the costs. The evidence is
    # unchanged.
    assert written.writer._connection.total_changes - changes == 4
    assert facts_of(written.end()).operation("render").busy_ns == 15


def test_iterations_are_read_in_order_with_what_each_place_gained(written):
    for i in range(1, 4):
        with written.fake.profiler.iteration():
            written.work("env_step", 100 * i)
            written.work("update", 10)
            written.fake.profiler.add_steps(8)
            written.fake.profiler.add_episodes(i % 2)
        written.flush()
    facts = facts_of(written.end())
    assert facts.series.first == facts.series.last == (1, 2, 3)
    assert facts.series.ledger_ns["env_step"] == (100, 200, 300)
    assert facts.series.ledger_ns["update"] == (10, 10, 10)
    assert facts.series.calls["env_step"] == (1, 1, 1)
    assert facts.series.steps == (8, 8, 8)
    assert facts.series.episodes == (1, 0, 1)
    assert facts.progress.steps_per_second == pytest.approx(24 / 630e-9)


def test_names_survive_any_content(written):
    names = ["<script>alert(1)</script>", 'a"b\\c', "学習 🏋", "two\nlines", "tab\t", "''; DROP TABLE node; --"]
    for name in names:
        written.work(name, 10)
    assert {operation.operation for operation in facts_of(written.end()).operations} == set(names)


def test_a_name_that_utf8_cannot_encode_is_still_recorded(written):
    written.work("half \ud800 a surrogate", 10)
    written.work("nul \0 inside", 20)
    assert [item.operation for item in facts_of(written.end()).operations] == ["nul ? inside", "half ? a surrogate"]


def test_samples_distinguish_missing_values_from_zero(written):
    written.work("env_step", 10)
    written.samples = [sample(1, cpu=None), sample(2, cpu=0.0, device_busy=None)]
    written.flush()
    with Session(written.end()) as session:
        first, second = session.samples()
    assert (first.cpu, second.cpu, second.device_busy) == (None, 0.0, None)


def test_a_reset_forgets_earlier_iterations(written):
    for _ in range(5):
        with written.fake.profiler.iteration():
            written.work("env_step", 10)
    written.flush()
    written.fake.profiler.reset()
    with written.fake.profiler.iteration():
        written.work("env_step", 7)
    facts = facts_of(written.end())
    assert facts.series.wall_ns == (7,)
    assert facts.operation("env_step").busy_ns == 7


def test_a_session_is_read_while_it_is_written(written, tmp_path):
    written.work("env_step", 10)
    written.flush()
    with Session(tmp_path) as session:
        written.work("env_step", 10)
        written.flush()
        assert session.snapshot().wall_ns == 10  # one moment, whatever is written meanwhile
        assert session.end is None
    with Session(tmp_path) as session:
        assert session.snapshot().wall_ns == 20
    written.end()


def test_a_finished_session_is_one_plain_file(written, tmp_path):
    written.work("env_step", 10)
    written.end()
    assert [path.name for path in tmp_path.iterdir()] == ["session.db"]
    with closing(sqlite3.connect(tmp_path / "session.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_the_file_declares_its_format(tmp_path):
    path = Written(tmp_path).end()
    header = path.read_bytes()[:100]
    assert int.from_bytes(header[68:72], "big") == schema.APPLICATION_ID  # where SQLite's format puts it
    assert int.from_bytes(header[60:64], "big") == schema.VERSION


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs)
def test_the_accounts_of_any_session_sum_to_its_wall_time(program, tmp_path_factory):
    """Random programs with threads, waits, resets and pauses, flushed at random moments, reported as JSON."""
    machine = Machine("auto")
    written = Written(tmp_path_factory.mktemp("run"), machine.fake)
    machine.snapshot = written.flush
    machine.iteration = machine.fake.profiler.ledger.iteration
    machine.run(program)
    path = written.end()
    report = msgspec.json.decode(to_json(report_of(path)))
    facts = report["facts"]
    accounts = [item["ledger_ns"] for item in facts["operations"]]
    extra = [row["ledger_ns"] for row in facts["breakdown"]["rows"][-2:]]
    outside = [part["ns"] for part in facts["breakdown"]["outside"]]
    assert sum(accounts) + sum(extra) == facts["breakdown"]["training_ns"] == facts["progress"]["training_ns"]
    assert sum(accounts) + sum(extra) + sum(outside) == facts["breakdown"]["wall_ns"]
    for place, wall in enumerate(facts["series"]["wall_ns"]):
        assert sum(values[place] for values in facts["series"]["ledger_ns"].values()) == wall
    assert breakdown(training_part(machine.fake.snapshot())).wall_ns == facts["breakdown"]["wall_ns"]
