"""Samples of the Python stack: each belongs to the operation that was open, and stands for the time since the last."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from typing import Any

import pytest
from fakes import CORES, Actor, Fake
from ledger.test_fork import in_child

from rlprof.ledger.code_files import LIBRARY, OWN, USER, owner_of
from rlprof.ledger.stacks import MOST_NS, CodeLine, StackTotals

MAIN = threading.main_thread().ident or 0


class Sampled:
    """A profiler with a fake clock whose stack is sampled on request."""

    def __init__(self, fake: Fake) -> None:
        self.fake = fake
        self.totals = StackTotals()
        fake.profiler.ledger.stacks(50_000_000, MAIN)

    def tick(self, ns: int) -> None:
        self.fake.tick(ns)
        assert self.fake.profiler.ledger.stack_tick()

    def take(self) -> dict[tuple[str | None, str], int]:
        """By operation and innermost function of these tests, ns."""
        self.totals.take(self.fake.profiler.ledger)
        names = self.names()
        found: Counter[tuple[str | None, str]] = Counter()
        for (node, frames), total in self.totals.totals.items():
            lines = [self.totals.frames[frame] for frame in frames]
            here = [line.function for line in lines if line.file == __file__ and "Sampled" not in line.function]
            found[names.get(node), here[-1] if here else ""] += total.ns
        return {key: ns for key, ns in found.items() if ns}

    def names(self) -> dict[int, str | None]:
        """Operations by node."""
        return {node.id: node.operation for node in self.fake.snapshot().nodes}

    def only(self) -> list[CodeLine]:
        """The frames of the only stack, outermost first, without those of the class."""
        self.totals.take(self.fake.profiler.ledger)
        ((_, frames),) = self.totals.totals
        return [line for line in (self.totals.frames[frame] for frame in frames) if "Sampled" not in line.function]


@pytest.fixture
def sampled(fake: Fake) -> Sampled:
    return Sampled(fake)


def collect(sampled: Sampled, ns: int) -> None:
    sampled.tick(ns)


def learn(sampled: Sampled, ns: int) -> None:
    sampled.tick(ns)


def test_a_sample_stands_for_the_time_since_the_last_in_the_operation_that_is_open(sampled):
    with sampled.fake.profile("rollout"):
        collect(sampled, 30)
        with sampled.fake.profile("env_step"):
            collect(sampled, 5)
        learn(sampled, 7)
    learn(sampled, 1)
    assert sampled.take() == {
        ("rollout", "collect"): 30,
        ("env_step", "collect"): 5,
        ("rollout", "learn"): 7,
        (None, "learn"): 1,
    }
    collect(sampled, 2)
    assert sampled.take()[None, "collect"] == 2  # cumulative


def test_a_frame_has_file_qualified_function_and_line(sampled):
    class Buffer:
        def add(self) -> None:
            sampled.tick(1)

    Buffer().add()
    frame = sampled.only()[-1]
    assert frame.file == __file__
    assert frame.function.endswith("<locals>.Buffer.add")
    assert frame.line == Buffer.add.__code__.co_firstlineno + 1
    assert frame.user


def test_a_long_time_without_a_tick_may_be_a_stop_and_does_not_count_whole(sampled):
    collect(sampled, 10**12)
    assert sampled.take() == {(None, "collect"): MOST_NS}


def test_library_frames_are_kept_apart_from_the_users(sampled):
    def default(_value: Any) -> str:
        sampled.tick(1)
        return ""

    json.JSONEncoder(default=default).encode(object())
    frames = sampled.only()
    at = [frame.function for frame in frames].index("JSONEncoder.encode")
    assert not frames[at].user
    assert frames[at - 1].user
    assert frames[-1].user
    assert not any("rlprof/ledger" in frame.file.replace("\\", "/") for frame in frames if frame.file != __file__)


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        (__file__, USER),
        ("<string>", USER),
        ("<stdin>", USER),
        ("<ipython-input-3-abc>", USER),
        ("/tmp/ipykernel_12/345.py", USER),
        ("train.py", USER),
        ("<frozen importlib._bootstrap>", LIBRARY),
        (threading.__file__, LIBRARY),
        ("/project/.venv/lib/python3.12/site-packages/torch/nn/modules/module.py", LIBRARY),
        ("/usr/lib/python3/dist-packages/numpy/core.py", LIBRARY),
        (owner_of.__wrapped__.__code__.co_filename, OWN),
        (owner_of.__wrapped__.__code__.co_filename.replace("ledger/code_files", "workloads/ppo/train"), USER),
    ],
)
def test_whose_code_a_file_is(file, owner):
    assert owner_of(file) == owner


def test_what_ran_before_the_training_is_start_up(sampled):
    fake = sampled.fake
    fake.profiler.ledger.begin_startup(fake.profile("startup"))
    collect(sampled, 100)
    with fake.profile("reset"):
        learn(sampled, 10)
    collect(sampled, 3)
    assert sampled.take() == {("startup", "collect"): 100, ("reset", "learn"): 10, (None, "collect"): 3}
    fake.profiler.ledger.end_startup()
    with fake.profile("env_step"):
        collect(sampled, 2)
    assert sampled.take() == {
        ("startup", "collect"): 103,
        ("startup", "learn"): 10,
        ("env_step", "collect"): 2,
    }


@pytest.mark.parametrize("drained", [False, True])
def test_samples_move_with_the_rest_of_a_span_that_is_split(sampled, drained):
    fake = sampled.fake
    fake.profile("rollout").__enter__()
    collect(sampled, 50)
    with fake.profile("env_step"):
        fake.tick(10)
    learn(sampled, 20)
    if drained:
        sampled.take()
    learn(sampled, 30)
    assert fake.profiler.ledger.split(fake.profile("rollout"), fake.profile("advantage")) == 50
    assert sampled.take() == {("rollout", "collect"): 50, ("advantage", "learn"): 60}


def test_samples_move_with_spans_that_get_another_name(sampled):
    fake = sampled.fake
    with fake.profile("rollout"), fake.profile("env_step"):
        collect(sampled, 5)
    sampled.take()
    with fake.profile("rollout"):
        learn(sampled, 6)
    assert fake.profiler.ledger.rename(fake.profile("rollout"), fake.profile("evaluation"))
    assert sampled.take() == {("env_step", "collect"): 5, ("evaluation", "learn"): 6}
    nodes = {node.id: node for node in fake.snapshot().nodes}
    above = {
        nodes[nodes[node].parent].operation
        for (node, _), total in sampled.totals.totals.items()
        if total.ns and nodes[node].operation == "env_step"
    }  # fmt: skip
    assert above == {"evaluation"}


def test_a_reset_forgets_samples(sampled):
    collect(sampled, 5)
    sampled.fake.profiler.reset()
    assert sampled.take() == {}
    learn(sampled, 2)
    assert sampled.take() == {(None, "learn"): 2}


def test_nothing_is_sampled_while_recording_or_sampling_is_off(fake):
    ledger = fake.profiler.ledger
    assert not ledger.stack_tick()
    assert ledger.drain_stacks() == ([], [], 0, 0)
    ledger.stacks(1, MAIN)
    fake.profiler.disable()
    assert not ledger.stack_tick()
    assert ledger.drain_stacks()[0] == []


def test_a_deep_stack_keeps_both_ends(sampled):
    def descend(depth: int) -> None:
        if depth:
            descend(depth - 1)
        else:
            learn(sampled, 1)

    def begin() -> None:
        descend(700)

    begin()
    frames = sampled.only()
    assert 120 <= len(frames) <= 128
    assert frames[-1].function == "learn"
    assert frames[-2].function.endswith("descend")
    assert frames[0].file != __file__  # of pytest, or of what has started it


def test_generators_and_coroutines_are_on_the_stack(sampled):
    def values() -> Any:
        learn(sampled, 1)
        yield

    async def train() -> None:
        await asyncio.sleep(0)
        list(values())

    asyncio.run(train())
    functions = [frame.function.rpartition(".")[2] for frame in sampled.only()]
    assert functions[-3:] == ["train", "values", "learn"]


def test_code_that_was_executed_and_is_gone(sampled):
    for i in range(3):
        exec(f"def made_{i}(f):\n    f()\nmade_{i}(f)\n", {"f": lambda: sampled.tick(1)})
    sampled.totals.take(sampled.fake.profiler.ledger)
    made = [frame for frame in sampled.totals.frames if frame.function.startswith("made_")]
    assert [(frame.file, frame.function, frame.line, frame.user) for frame in made] == [
        ("<string>", f"made_{i}", 2, True) for i in range(3)
    ]


def test_a_driver_that_is_not_the_main_thread(fake):
    sampled = Sampled(fake)
    driver = Actor("driver")
    inside, over = threading.Event(), threading.Event()

    def drive() -> None:
        fake.profiler.drive()
        with fake.profile("update"):
            wait_for(inside, over)

    thread = threading.Thread(target=lambda: driver.do(drive))
    thread.start()
    inside.wait()
    sampled.tick(9)
    over.set()
    thread.join()
    driver.end()
    assert sampled.take() == {("update", "wait_for"): 9}


def wait_for(inside: threading.Event, over: threading.Event) -> None:
    inside.set()
    over.wait()


def test_a_forked_child_samples_by_itself(sampled):
    def check() -> None:
        assert not sampled.fake.profiler.ledger.stack_tick()  # until somebody switches it on
        mine = Sampled(sampled.fake)
        learn(mine, 2)
        assert mine.take() == {(None, "learn"): 2}

    collect(sampled, 5)
    in_child(check)
    assert sampled.take() == {(None, "collect"): 5}


def test_too_many_stacks_lose_library_frames_first_and_then_count_as_lost(fake):
    sampled = Sampled(fake)
    sampled.totals = StackTotals(most=10)
    for i in range(15):
        exec(f"def made_{i}(f):\n    f()\nmade_{i}(f)\n", {"f": lambda: sampled.tick(1)})
    sampled.totals.take(fake.profiler.ledger)
    stacks = [[sampled.totals.frames[frame] for frame in frames] for _, frames in sampled.totals.totals]
    assert len(stacks) == 11
    assert not all(frame.user for frame in stacks[0])
    assert all(frame.user for frame in stacks[-1])
    assert sampled.totals.lost_ns == 4


def test_both_cores_have_the_same_format():
    if len(CORES) < 2:
        pytest.skip("only one core is tested")

    def run(core: str) -> tuple[Any, ...]:
        sampled = Sampled(Fake(core))
        with sampled.fake.profile("rollout"):
            collect(sampled, 30)
        records, lines, lost, cpu = sampled.fake.profiler.ledger.drain_stacks()
        ((time, node, ns, _, stack),) = records
        shown = [code.co_name for code, _ in (lines[number] for number in stack) if owner_of(code.co_filename) != OWN]
        return time, node, ns, shown, lost, cpu

    assert run("c") == run("python")
