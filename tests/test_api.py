"""The public API: what `import rlprof` offers, and a session read as data."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest
from sessions import Written, run_program

import rlprof
from rlprof.errors import RlprofError, UnreadableError


@pytest.fixture
def written(tmp_path):
    """Three iterations: 100, 200 and 300 ns of env_step, 40 ns of update with 30 ns of backward in each."""
    written = Written(tmp_path / "planted_20260101-000000")
    for number in range(1, 4):
        with written.fake.profiler.iteration():
            written.work("env_step", 100 * number)
            written.fake.profiler.add_steps(8)
            with written.fake.profile("update"):
                written.work("backward", 30)
                written.fake.tick(10)
        written.fake.tick(5)
    return written


@pytest.fixture
def session(written):
    with rlprof.open_session(written.end()) as session:
        yield session


@pytest.mark.parametrize("name", rlprof.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(rlprof, name)
    assert name in dir(rlprof)
    assert name == "__version__" or inspect.getdoc(value)


@pytest.mark.parametrize("name", [name for name in rlprof.__all__ if name[0].islower()])
def test_every_public_function_has_a_signature(name):
    inspect.signature(getattr(rlprof, name))


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = rlprof.nothing


def test_the_version_is_that_of_the_installed_package():
    assert rlprof.__version__ == metadata.version("rlprof")


def test_get_global_profiler_is_the_profiler_of_the_functions():
    assert rlprof.get_global_profiler() is rlprof.get_profiler()
    assert rlprof.profile == rlprof.get_profiler().profile


def test_the_functions_record_to_the_profiler_of_the_process(tmp_path):
    program = """
        import rlprof

        @rlprof.profile_function
        def bare(): pass

        @rlprof.profile_function("named", category="policy")
        def other(): pass

        rlprof.enable()
        for _ in range(2):
            with rlprof.iteration():
                bare(), other()
                rlprof.add_steps(4)
                rlprof.add_episodes(1)
        rlprof.disable()
        found = rlprof.snapshot()
        assert (found.iterations, found.steps, found.episodes) == (2, 8, 2)
        assert found.account("bare").calls == found.account("named").calls == 2
        assert found.account("named").category == "policy"
        rlprof.reset()
        assert rlprof.snapshot().steps == 0
    """
    done = run_program(inspect.cleandoc(program), tmp_path)
    assert done.returncode == 0, done.stderr


def test_accounts_sum_to_the_wall_time(session):
    accounts = session.accounts()
    found = {account.operation: (account.calls, account.ledger_ns) for account in accounts}
    assert found == {
        "env_step": (3, 600), "backward": (3, 90), "update": (3, 30), "unattributed": (0, 15), "rlprof": (0, 0),
    }  # fmt: skip
    assert sum(account.ledger_ns for account in accounts) == session.snapshot().wall_ns == 735


def test_a_tree_has_each_node_before_those_below_it(session):
    depth = {None: -1}
    shown = []
    for node in session.tree():
        depth[node.id] = depth[node.parent] + 1
        shown.append((depth[node.id], node.operation, node.wall_ns))
    assert shown == [(0, None, 735), (1, "env_step", 600), (1, "update", 120), (2, "backward", 90)]


def test_iterations_and_lanes_are_tables(session):
    iterations = session.iterations()
    assert [(row.first, row.last, row.steps, row.wall_ns) for row in iterations] == [
        (0, 0, 8, 140), (1, 1, 8, 240), (2, 2, 8, 340),
    ]  # fmt: skip
    assert iterations.to_dict()["wall_ns"] == [140, 240, 340]
    (lane,) = session.lanes()
    assert (lane.id, lane.kind, lane.on_driver) == (0, "thread", True)


def test_a_session_without_iterations_has_an_empty_table_with_columns(tmp_path):
    written = Written(tmp_path)
    written.work("env_step", 10)
    with rlprof.open_session(written.end()) as session:
        assert session.iterations().to_dict() == {
            "start": [], "end": [], "first": [], "last": [], "steps": [], "episodes": [], "wall_ns": [],
        }  # fmt: skip


def test_a_running_session_is_read_as_of_its_opening(written):
    written.flush()
    with rlprof.open_session(written.path) as session:
        written.work("render", 50)
        written.flush()
        assert session.end is None
        assert session.snapshot().account("render").calls == 0
    with rlprof.open_session(written.path.parent) as session:
        assert session.snapshot().account("render").calls == 1
    written.end()


def test_last_is_the_newest_session(written, monkeypatch):
    written.end()
    monkeypatch.setenv("RLPROF_DIR", str(written.path.parent.parent))
    with rlprof.open_session() as session:
        assert session.path == written.path


def test_what_is_no_session_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(UnreadableError, match="is a folder without"):
        rlprof.open_session(tmp_path)


def test_to_pandas_hands_over_plain_columns(session, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda data, columns: (data, columns)))
    data, columns = session.accounts().to_pandas()
    assert columns == list(data)
    assert "histogram" not in columns
    assert data["operation"][0] == "env_step"
    assert data["ledger_ns"] == [600, 90, 30, 15, 0]


def test_a_table_becomes_a_data_frame(session):
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = session.accounts().to_pandas()
    assert frame.set_index("operation").ledger_ns["backward"] == 90
    assert session.tree().to_pandas().groupby("lane").self_ns.sum().tolist() == [735]
    assert session.lanes().to_pandas().kind.tolist() == ["thread"]


def test_without_pandas_one_sentence_names_it(session, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RlprofError) as raised:
        session.lanes().to_pandas()
    assert str(raised.value) == "to_pandas() needs pandas, which is not installed; install it with pip install pandas"


JOINING = """
import subprocess, sys
import rlprof

WORKER = '''
import sys
import rlprof
assert rlprof.join_session(sys.argv[1])
assert rlprof.join_session(sys.argv[1]), "a second call changes nothing"
for _ in range(7):
    with rlprof.profile("env_step"):
        sum(range(1000))
'''

with rlprof.record("run") as recording, rlprof.profile("env_wait", wait=True):
    subprocess.run([sys.executable, "-c", WORKER, recording.folder], check=True)
print(recording.folder)
"""


@pytest.mark.skipif(rlprof.get_profiler().core != "c", reason="only the C core shares its clock")
def test_a_process_started_from_nothing_joins_the_session(tmp_path):
    done = run_program(JOINING, tmp_path)
    assert done.returncode == 0, done.stderr
    with rlprof.open_session(done.stdout.strip()) as session:
        assert session.snapshot().account("env_step").calls == 7
        (worker,) = [lane for lane in session.lanes() if lane.kind == "process"]
        assert [node.lane for node in session.tree() if node.operation == "env_step"] == [worker.id]
        assert sum(row.ledger_ns for row in session.accounts()) == session.snapshot().wall_ns
    late = "import sys, rlprof; assert not rlprof.join_session(sys.argv[1])"
    subprocess.run([sys.executable, "-c", late, done.stdout.strip()], check=True, timeout=60)


def test_joining_needs_a_session(tmp_path):
    assert not rlprof.join_session()
    with pytest.raises(UnreadableError, match="is a folder without"):
        rlprof.join_session(tmp_path)
