"""The thread that ticks, on the real clock. Every test waits for a number of samples, not for a time."""

# ruff: noqa: PT017 - exceptions in flight are what one test is about

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from ledger.test_fork import in_child

from rlprof import Profiler
from rlprof.ledger import profiler as module

pytestmark = pytest.mark.skipif(module._core is None, reason="only the C core ticks by itself")

MAIN = threading.main_thread().ident or 0
NUMBER = 3**60_000
MILLISECOND = 1_000_000
SAMPLES = 60


@pytest.fixture
def profiler() -> Iterator[Profiler]:
    profiler = Profiler("c")
    profiler.enable()
    profiler.ledger.stacks(MILLISECOND, MAIN)
    yield profiler
    profiler.ledger.stacks(0, MAIN)
    profiler.disable()


def sample(
    profiler: Profiler, work: Callable[[], None], wanted: int = SAMPLES, may_lose: bool = False
) -> Counter[tuple[str, int]]:
    """Work until there are so many samples. Returns ns by innermost function and line."""
    found: Counter[tuple[str, int]] = Counter()
    lines: list[tuple[str, int]] = []
    taken = 0
    for _ in range(10_000):
        work()
        records, new, lost, _ = profiler.ledger.drain_stacks()
        lines += [(code.co_name, line) for code, line in new]
        assert lost == 0 or may_lose
        for _, _, ns, _, stack in records:
            found[lines[stack[-1]]] += ns
            taken += 1
        if taken >= wanted:
            return found
    raise AssertionError(f"only {taken} samples")


def share(found: Counter[tuple[str, int]], function: Callable[..., object], below: int) -> float:
    """Share of a line that is so many lines below the first of its function."""
    code = function.__code__
    return found[code.co_name, code.co_firstlineno + below] / found.total()


def plain_python() -> int:
    total = 0
    for i in range(30_000):
        total += i
    return total


def test_pure_python_on_the_only_thread_is_seen(profiler):
    found = sample(profiler, plain_python)
    assert {name for name, _ in found} & {"plain_python"}


def slow_operator() -> None:
    for _ in range(3):
        value = NUMBER * NUMBER
        len("a cheap call, at whose end the stack is read")
        del value


def square(number: int) -> int:
    return number * number


def slow_function() -> None:
    for _ in range(3):
        square(NUMBER)
        len("a cheap call, at whose end the stack is read")


@pytest.mark.figures
def test_time_is_booked_to_the_line_that_takes_it_and_not_to_the_next_call(profiler):
    assert share(sample(profiler, slow_operator, 200), slow_operator, 2) >= 0.9


@pytest.mark.figures
def test_time_of_a_function_that_has_returned_is_its_own_or_its_callers(profiler):
    """Its code may be gone by then, unless it was seen on a stack before."""
    found = sample(profiler, slow_function, 200)
    assert share(found, square, 1) + share(found, slow_function, 2) >= 0.9


def deep(levels: int) -> int:
    return deep(levels - 1) + deep(levels - 1) if levels else len("a call")


def step_and_learn(profiler: Profiler) -> None:
    """Short calls, in turns inside and outside of a span."""
    span = profiler.profile("step")
    for _ in range(50):
        with span:
            deep(8)
        deep(8)


@pytest.mark.figures
def test_a_sample_inside_a_span_is_at_a_line_inside_of_it(profiler):
    """The thread goes on while it is looked at. A look that it has run through must not count."""
    first = step_and_learn.__code__.co_firstlineno
    at_line: Counter[tuple[int, int]] = Counter()
    lines: list[tuple[object, int]] = []
    while at_line.total() < 600:
        step_and_learn(profiler)
        records, new, _, _ = profiler.ledger.drain_stacks()
        lines += new
        for record in records:
            inside = [lines[line][1] - first for line in record[4] if lines[line][0] is step_and_learn.__code__]
            if inside:
                at_line[record[1], inside[0]] += 1
    node = max((node for node, line in at_line if line == 5), key=lambda node: at_line[node, 5])
    of_span = {line: number for (of, line), number in at_line.items() if of == node}
    # Entering and leaving the span is in its own line.
    assert of_span.get(4, 0) + of_span[5] >= 0.8 * sum(of_span.values()), of_span


def test_exceptions_in_flight_are_not_touched(profiler):
    def work() -> None:
        for i in range(2_000):
            try:
                try:
                    raise ValueError(i)
                except ValueError as first:
                    assert sys.exc_info()[1] is first
                    raise KeyError(i) from first
            except KeyError as error:
                assert error.args == (i,)
                assert error.__cause__ is error.__context__
                assert isinstance(error.__cause__, ValueError)
                assert error.__cause__.args == (i,)
        assert sys.exc_info() == (None, None, None)

    sample(profiler, work)


def test_samples_go_to_the_open_operation_although_the_call_is_over(profiler):
    """A timed C function ends before Python can look at the stack."""
    timed = profiler.profile("square")(NUMBER.__mul__)
    taken: Counter[int] = Counter()
    while taken.total() < SAMPLES:
        for _ in range(50):
            timed(NUMBER)
        taken.update(record[1] for record in profiler.ledger.drain_stacks()[0])
    (node,) = (node.id for node in profiler.snapshot().nodes if node.operation == "square")
    assert taken[node] > 0.8 * taken.total()


def test_nothing_is_sampled_once_it_ends(profiler):
    sample(profiler, plain_python, 5)
    profiler.ledger.stacks(0, MAIN)
    profiler.ledger.drain_stacks()
    for _ in range(20):
        plain_python()
    assert profiler.ledger.drain_stacks()[0] == []


def test_a_profiler_may_go_at_any_moment():
    for _ in range(30):
        profiler = Profiler("c", clock="monotonic")
        profiler._cost_measured = float("inf")
        profiler.enable()
        profiler.ledger.stacks(10_000, MAIN)
        plain_python()
        del profiler
        gc.collect()
        plain_python()


def test_a_garbage_collection_may_sample_while_samples_are_drained(profiler):
    """Python code then runs in the middle: here at almost every new object, and for as long as several ticks."""
    thresholds = gc.get_threshold()
    profiler.ledger.stacks(20_000, MAIN)

    def collect(_phase: str, _info: dict[str, int]) -> None:
        exec("for i in range(1_000):\n    str(i)")  # always at lines that were not seen before

    gc.callbacks.append(collect)
    gc.set_threshold(20)
    try:
        sample(profiler, plain_python, 2_000, may_lose=True)  # the log is full if work() takes very long
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(collect)


def test_forks_while_it_ticks(profiler):
    profiler.ledger.stacks(20_000, MAIN)

    def check() -> None:
        plain_python()
        assert profiler.ledger.drain_stacks()[0] == []
        profiler.ledger.stacks(MILLISECOND, MAIN)
        profiler.profile("child").__enter__()
        sample(profiler, plain_python, 5)

    for _ in range(5):
        in_child(check)
    sample(profiler, plain_python, 5)


def test_threads_come_and_go_meanwhile(profiler):
    profiler.ledger.stacks(100_000, MAIN)

    def work() -> None:
        threads = [threading.Thread(target=plain_python) for _ in range(4)]
        for thread in threads:
            thread.start()
        plain_python()
        for thread in threads:
            thread.join()

    sample(profiler, work)
