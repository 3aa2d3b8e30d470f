"""Stacks of a recorded training: which lines, of which operation, of which process."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from recording.worker_trainings import only_session, run_envs
from run.alike import alone, recorded
from run.alike import only_session as recorded_session
from sessions import report_of

from rlprof.ledger import profiler as module
from rlprof.ledger.stacks import CodeLine
from rlprof.recording.sources import Sources
from rlprof.recording.stacks import SessionStacks
from rlprof.session.reader import Session
from rlprof.session.stacks import MOST_SOURCE, Stack

TRAINING = """
import json, os, sys
from rlprof import get_profiler, profile

def burn(rounds):
    number = 3 ** 20_000
    for _ in range(rounds):
        number * number

def three_parts(rounds):
    burn(3 * rounds)  # three parts
    burn(rounds)  # one part

burn(1_500)  # imports and the like
for _ in range(90):
    with get_profiler().iteration():
        with profile("update"):
            three_parts(120)
        get_profiler().add_steps(1)
"""


def by_line(folder: Path) -> tuple[list[Stack], Counter[tuple[str | None, str]]]:
    """The stacks, and ns by operation and the text of the user's lines, each once per stack."""
    found: Counter[tuple[str | None, str]] = Counter()
    with Session(folder) as session:
        operations = {node.id: node.operation for node in session.tree()}
        stacks = session.stacks()
    for stack in stacks:
        for source in {frame.source for frame in stack.frames if frame.user}:
            found[operations[stack.node], source] += stack.ns
    return stacks, found


@pytest.mark.figures
@pytest.mark.parametrize("core", ["c", "python"])
def test_the_shares_of_lines_in_an_operation(core, tmp_path):
    if core == "c" and module._core is None:
        pytest.skip("the C core is not built")
    (tmp_path / "train.py").write_text(TRAINING)
    done = recorded(["--quiet", "train.py"], tmp_path, RLPROF_CORE=core)
    assert (done.returncode, done.stderr) == (0, "")
    stacks, found = by_line(recorded_session(tmp_path))
    most, least = (found["update", f"burn({rounds})  # {name}"] for rounds, name in
                   (("3 * rounds", "three parts"), ("rounds", "one part")))  # fmt: skip
    assert 0.58 < most / (most + least) < 0.92, "some 100 samples: four standard deviations"
    assert found["update", "three_parts(120)"] >= most + least
    assert found["startup", "burn(1_500)  # imports and the like"] > 0
    assert found["update", "burn(1_500)  # imports and the like"] == 0
    files = {frame.file for stack in stacks for frame in stack.frames if frame.user}
    assert files == {"train.py"}
    assert not any("rlprof" in frame.file for stack in stacks for frame in stack.frames)


@pytest.mark.parametrize("how", ["--no-stacks", "RLPROF_STACKS", "record"])
def test_switched_off(how, tmp_path):
    (tmp_path / "train.py").write_text(
        "from rlprof import record\nwith record('here', stacks=False):\n    sum(range(30_000_000))\n"
        if how == "record"
        else "sum(range(30_000_000))\n"
    )
    if how == "record":
        done = alone(["train.py"], tmp_path)
    else:
        options = ["--no-stacks"] if how == "--no-stacks" else []
        done = recorded([*options, "train.py"], tmp_path, **({} if options else {"RLPROF_STACKS": "0"}))
    assert done.returncode == 0, done.stderr
    with Session(recorded_session(tmp_path)) as session:
        assert session.stacks() == []
        assert session.state is not None
        assert session.state.tick_ns == 0


@pytest.mark.skipif(module._core is None, reason="only the C core shares")
def test_workers_are_sampled_in_the_operation_that_is_open_there(tmp_path):
    run_envs(tmp_path, "[0.02] * 2")
    with Session(only_session(tmp_path)) as session:
        nodes = {node.id: node for node in session.tree()}
        lanes = {lane.id: lane.name for lane in session.lanes()}
        stacks = session.stacks()
    of_workers = [stack for stack in stacks if lanes[nodes[stack.node].lane].startswith("env-")]
    assert {lanes[nodes[stack.node].lane] for stack in of_workers} == {"env-0", "env-1"}
    steps = [stack for stack in of_workers if nodes[stack.node].operation == "env_step"]
    assert sum(stack.ns for stack in steps) > 0.5 * sum(stack.ns for stack in of_workers)
    assert {stack.frames[-1].function for stack in steps} == {"env"}


PIPES = """
import multiprocessing as mp, time
from rlprof import get_profiler, profile

def compute():
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass

def worker(pipe):
    while pipe.recv():
        with profile("env_step"):
            pass
        compute()  # outside of all operations
        pipe.send(1)

if __name__ == "__main__":
    pipe, there = mp.get_context("spawn").Pipe()
    process = mp.get_context("spawn").Process(target=worker, args=(there,))
    process.start()
    for _ in range(150):
        with get_profiler().iteration():
            pipe.send(1)
            pipe.recv()
            get_profiler().add_steps(1)
    pipe.send(0)
    process.join()
"""


@pytest.mark.long
def test_what_workers_do_outside_of_operations_is_known_from_samples(tmp_path):
    (tmp_path / "train.py").write_text(PIPES)
    done = recorded(["--quiet", "train.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    report = report_of(recorded_session(tmp_path))
    first = report.facts.code.in_workers[0]
    assert (first.function, first.share > 0.5) == ("compute", True)
    finding = report.findings.findings[0]
    assert (finding.rule, finding.place.function) == ("worker_code", "compute")


def test_statements_are_read_short_and_without_secrets(tmp_path):
    (tmp_path / "train.py").write_text(
        f"x = 1\n    api_key = 'sk-abcdefghijklmnopqrstuvwxyz123456'\ny = '{'z' * 900}'\n"
    )
    sources = Sources(str(tmp_path))
    assert sources.statement("train.py", 1) == ("x = 1", False)
    assert "abcdefghijklmnop" not in sources.statement(str(tmp_path / "train.py"), 2)[0]
    assert len(sources.statement("train.py", 3)[0]) == MOST_SOURCE
    nothing = ("", False)
    assert (
        sources.statement("train.py", 9)
        == sources.statement("train.py", 0)
        == sources.statement("gone.py", 1)
        == nothing
    )


STATEMENTS = """\
def collect(envs):
    for env in envs:
        obs = torch.stack([
            torch.as_tensor(one),
            two,
        ])
        if obs:
            act(")", obs)
    return done(1,
                2)

def act(text, obs):
    while text:
        text = text[1:]
    print(text)
"""


@pytest.mark.parametrize(
    ("line", "statement", "loop"),
    [
        (2, "for env in envs:", True),
        (3, "obs = torch.stack([ torch.as_tensor(one), two, ])", True),
        (5, "obs = torch.stack([ torch.as_tensor(one), two, ])", True),
        (6, "obs = torch.stack([ torch.as_tensor(one), two, ])", True),
        (8, 'act(")", obs)', True),
        (10, "return done(1, 2)", False),
        (14, "text = text[1:]", True),
        (15, "print(text)", False),
    ],
)
def test_whole_statements_and_their_loops(line, statement, loop, tmp_path):
    (tmp_path / "train.py").write_text(STATEMENTS)
    assert Sources(str(tmp_path)).statement("train.py", line) == (statement, loop)


def test_files_that_cannot_be_read_have_no_lines(tmp_path):
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00" * 10)
    (tmp_path / "odd.py").write_text("# -*- coding: no-such-thing -*-\nx = 1\n")
    assert Sources(str(tmp_path)).statement("binary.py", 1)[0] == ""
    assert Sources(str(tmp_path)).statement("odd.py", 2)[0] == ""


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("work/lib/env.py", "lib/env.py"),
        ("scripts/train.py", "train.py"),
        ("scripts/nets/mlp.py", "nets/mlp.py"),
        ("scripts/same.py", "scripts/same.py"),
        ("elsewhere/util.py", "elsewhere/util.py"),
    ],
)
def test_files_are_named_from_the_working_directory_or_from_the_folder_of_the_script(
    file, shown, tmp_path, monkeypatch
):
    """A file that has the same name in both places keeps its whole path."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "same.py").touch()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("sys.argv", [str(tmp_path / "scripts" / "train.py")])
    stacks = SessionStacks()
    stacks.numbers([CodeLine(str(tmp_path / file), "f", 1, user=True)])
    ((_, named, *_),), _ = stacks.rows()
    whole = shown.startswith(("scripts", "elsewhere"))
    assert named == (str(tmp_path / shown) if whole else shown)


def test_only_lines_that_can_be_opened_are_the_users(tmp_path):
    (tmp_path / "train.py").write_text("x = 1\n")
    (tmp_path / "pack.zip").write_text("")
    places = {
        ("train.py", 1): 1, ("train.py", 0): 0, ("<string>", 1): 0, ("gone.py", 1): 0, ("pack.zip/net/a.py", 3): 1,
    }  # fmt: skip
    stacks = SessionStacks()
    stacks.numbers(
        [CodeLine(str(tmp_path / file) if file[0] != "<" else file, "f", line, True) for file, line in places]
    )
    assert [row[4] for row in stacks.rows()[0]] == [*places.values()]
