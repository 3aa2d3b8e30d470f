"""Lines of the user's code, from planted stack samples."""

from __future__ import annotations

import pytest
from sessions import Written

from rlprof.analysis.code import LEAST_SHARE, MOST_CALLS, MOST_LINES, Code, _in_workers, code_of
from rlprof.analysis.training import training_of
from rlprof.ledger.snapshot import Node
from rlprof.session.reader import Session
from rlprof.session.stacks import Frame, Stack

MS = 1_000_000
MB = 1 << 20


def user(line, function="collect", file="train.py", source="x = f()"):
    return Frame(file=file, function=function, line=line, user=True, source=source)


def library(function, file="/env/lib/python3.11/site-packages/numpy/core/shape_base.py", line=7):
    return Frame(file=file, function=function, line=line, user=False, source="")


MAIN = user(1, "<module>", source="main()")


@pytest.fixture
def code(tmp_path):
    """The code of a training, of (operation, frames, samples' ns, memory). 60 ms of env_step, 30 of backward in update,
    10 of update itself, 20 without a span, and 500 of start-up."""

    def make(*sampled):
        written = Written(tmp_path / str(len(list(tmp_path.iterdir()))))
        written.work("startup", 500 * MS)
        written.work("env_step", 60 * MS)
        with written.fake.profile("update"):
            written.fake.tick(10 * MS)
            written.work("backward", 30 * MS)
        written.fake.tick(20 * MS)
        with Session(written.end()) as session:
            nodes = {node.operation: node.id for node in session.snapshot().net_nodes}
            stacks = [
                Stack(node=nodes[operation], frames=tuple(frames), ns=ns, memory=memory)
                for operation, frames, ns, memory in sampled
            ]
            session.stacks = lambda: stacks
            return code_of(session, training_of(session))

    return make


def test_time_in_libraries_belongs_to_the_innermost_line_of_the_user(code):
    inner = user(42, "observe", "env.py", "np.stack(self.frames)")
    found = code(("env_step", [MAIN, user(12), library("step"), inner, library("stack"), library("concatenate")], 1, 0))
    (line,) = found.within("env_step")
    assert (line.where, line.function, line.source) == ("env.py:42", "observe", "np.stack(self.frames)")
    assert line.below == ("numpy.core.shape_base:stack", "numpy.core.shape_base:concatenate")


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", "torch.nn.modules.linear"),
        ("/env/lib/python3.11/site-packages/torch/__init__.py", "torch"),
        ("/usr/lib/python3.11/copy.py", "copy"),
        ("/usr/lib/python3/dist-packages/yaml/__init__.py", "yaml"),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
    ],
)
def test_a_library_is_named_as_it_is_imported(code, file, module):
    (line,) = code(("env_step", [MAIN, library("f", file)], 1, 0)).within("env_step")
    assert line.below == (f"{module}:f",)


def test_what_a_line_calls_is_its_hottest_path(code):
    a, b = [MAIN, user(5), library("a")], [MAIN, user(5), library("b")]
    (line,) = code(("env_step", a, 1, 0), ("env_step", b, 3, 0)).within("env_step")
    assert line.below == ("numpy.core.shape_base:b",)


def test_shares_are_of_the_own_time_and_the_ledger_knows_how_long_it_is(code):
    """Three quarters and a quarter of the samples, of 60 ms; how many samples there are does not matter."""
    found = code(
        ("env_step", [MAIN, user(10)], 30, 0),
        ("env_step", [MAIN, user(20)], 10, 0),
        ("update", [MAIN, user(30)], 1, 0),
        ("backward", [MAIN, user(31), library("backward")], 1, 0),
        (None, [MAIN], 1, 0),
    )
    assert [(line.line, line.share, line.ns) for line in found.within("env_step")] == [
        (10, 0.75, pytest.approx(45 * MS)),
        (20, 0.25, pytest.approx(15 * MS)),
    ]
    assert [(line.line, line.ns) for line in found.within("update")] == [(30, pytest.approx(10 * MS))]
    assert [(line.line, line.ns) for line in found.within("backward")] == [(31, pytest.approx(30 * MS))]
    assert [(line.where, line.ns) for line in found.within("unattributed")] == [("train.py:1", pytest.approx(20 * MS))]
    assert sum(line.ns for lines in found.lines.values() for line in lines) == pytest.approx(120 * MS)


def test_samples_without_a_line_of_the_user_count_for_the_whole(code):
    found = code(("env_step", [MAIN, user(10)], 1, 0), ("env_step", [library("thread")], 3, 0))
    assert [(line.line, line.share) for line in found.within("env_step")] == [(10, 0.25)]


def test_start_up_and_unknown_nodes_have_no_lines(code):
    found = code(("startup", [MAIN, user(3)], 100, 50 * MB))
    assert (found.sampled_ns, found.lines, found.calls, found.growth) == (0, {}, {}, ())
    assert found.within("env_step") == ()


def test_one_line_in_two_operations_is_listed_in_both(code):
    found = code(("env_step", [MAIN, user(10)], 1, 0), ("backward", [MAIN, user(10)], 1, 0))
    assert [found.within(name)[0].where for name in ("env_step", "backward")] == ["train.py:10"] * 2


def test_only_lines_that_matter_are_listed_hottest_first(code):
    many = [("env_step", [MAIN, user(line)], 100 + line, 0) for line in range(1, 3 * MOST_LINES)]
    lines = code(*many).within("env_step")
    assert len(lines) <= MOST_LINES
    assert [line.line for line in lines] == sorted((line.line for line in lines), reverse=True)
    few = code(("env_step", [MAIN, user(1)], 10_000, 0), ("env_step", [MAIN, user(2)], 10_000 * LEAST_SHARE / 2, 0))
    assert [line.line for line in few.within("env_step")] == [1]


def test_the_flame_graph_has_the_users_functions_only(code):
    step, look = user(12, "step", "env.py"), user(40, "look", "env.py")
    found = code(
        ("env_step", [MAIN, library("call"), step, look, library("stack")], 1, 0),
        ("env_step", [MAIN, user(9, "<module>"), step, user(41, "look", "env.py")], 1, 0),
        ("env_step", [MAIN, library("call"), step], 2, 0),
    )
    calls = {call.path: call.ns for call in found.calls["env_step"]}
    assert calls == {
        ("train.py:<module>", "env.py:step"): pytest.approx(30 * MS),
        ("train.py:<module>", "env.py:step", "env.py:look"): pytest.approx(15 * MS),
        ("train.py:<module>", "train.py:<module>", "env.py:step", "env.py:look"): pytest.approx(15 * MS),
    }


def test_the_flame_graph_is_bounded(code):
    many = [("env_step", [MAIN, user(1, f"f{i}")], 1 + i, 0) for i in range(2 * MOST_CALLS)]
    calls = code(*many).calls["env_step"]
    assert len(calls) == MOST_CALLS
    assert calls[0].ns == max(call.ns for call in calls)


def test_memory_is_attributed_to_the_lines_during_which_it_rose(code):
    found = code(
        ("env_step", [MAIN, user(10), library("append")], 1, 30 * MB),
        ("env_step", [MAIN, user(10), library("append")], 1, 20 * MB),
        ("backward", [MAIN, user(20)], 1, 80 * MB),
        ("backward", [MAIN, user(20)], 1, -70 * MB),
        ("backward", [MAIN, user(30)], 1, -5 * MB),
    )
    assert [(grown.operation, grown.line.line, grown.bytes) for grown in found.growth] == [
        ("env_step", 10, 50 * MB),
        ("backward", 20, 10 * MB),
    ]


def test_without_samples_nothing_is_known(code):
    found = code()
    assert (found.sampled_ns, found.lines, found.calls, found.growth) == (0, {}, {}, ())


def test_an_operation_at_two_places_has_the_lines_of_each(tmp_path):
    """Steps of an evaluation must not show the line that steps in a rollout."""
    written = Written(tmp_path)
    for phase in ("rollout", "evaluation"):
        with written.fake.profile(phase):
            written.work("env_step", 50 * MS)
    with Session(written.end()) as session:
        phases = {node.id: node.operation for node in session.snapshot().net_nodes}
        steps = [node for node in session.snapshot().net_nodes if node.operation == "env_step"]
        lines = {"rollout": 32, "evaluation": 64}
        stacks = [Stack(node.id, (MAIN, user(lines[phases[node.parent]])), 5, 0) for node in steps]
        session.stacks = lambda: stacks
        found = code_of(session, training_of(session))
    for phase, line in lines.items():
        assert [one.line for one in found.at([phase, "env_step"], on_driver=True)] == [line]
    assert {one.line for one in found.at(["env_step"], on_driver=True)} == set(lines.values())


def test_a_worker_that_waits_for_a_task_does_not_run_the_line_that_started_it(tmp_path):
    start = library("BaseProcess._bootstrap", "/env/lib/python3.11/multiprocessing/process.py")
    get = library("Queue.get", "/env/lib/python3.11/multiprocessing/queues.py")
    found = _in_workers(
        [
            (Node(), Stack(1, (MAIN, user(28, source="list(loader)"), start, get), 70, 0)),
            (Node(), Stack(1, (MAIN, user(28), start, user(5, "work", source="simulate()")), 20, 0)),
            (Node(operation="env_step"), Stack(1, (MAIN, start, user(9)), 10, 0)),
        ]
    )
    assert [(line.where, line.share) for line in found] == [("train.py:5", 0.2)]


def test_workers_and_the_driver_have_lines_of_their_own(code):
    """Where an operation runs on both sides, a row of the driver must not show a line that only workers run."""
    lines = code(("env_step", [user(83)], 3, 0), ("backward", [user(26)], 5, 0)).lines
    both = Code(
        8,
        {"env_step": (*lines["backward"], *lines["env_step"])},
        {},
        (),
        on_driver={"env_step": lines["env_step"]},
        elsewhere={"env_step": lines["backward"]},
    )
    assert [line.line for line in both.within("env_step", on_driver=True)] == [83]
    assert [line.line for line in both.within("env_step", on_driver=False)] == [26]
    assert [line.line for line in both.within("env_step")] == [26, 83]
