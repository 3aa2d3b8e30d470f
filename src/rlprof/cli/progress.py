"""An experiment on a terminal: what it will cost, how far it is, and the result so far."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import click

from rlprof.analysis.comparison import Comparison
from rlprof.analysis.figures import duration
from rlprof.analysis.slowdown import SLOWDOWN_SIZES, Experiment
from rlprof.compare.paired import Plan, State, compare_live
from rlprof.compare.text import few_pairs
from rlprof.experiment.slowdowns import LEAST_BLOCKS, SlowdownPlan, SlowdownProgress, run_slowdowns
from rlprof.render.intervals import faster_or_slower, shown


def run_comparison(plan: Plan, component_of: Callable[[str], str]) -> Comparison:
    """Compare two command lines, with progress on stderr."""
    narrow = f", or until the interval is within ±{100 * plan.width:g}%" if plan.width else ""
    before = (
        f"up to {plan.pairs} pairs of processes, each with at least {plan.blocks} iterations of both trainings;"
        f" at most {_time(plan.seconds)}{narrow}"
    )
    if plan.width and (few := few_pairs(plan.pairs)):  # --noise has no verdict
        before += f"\n{few}"
    reported = 0

    def report(state: State) -> None:
        nonlocal reported
        doing = f"iteration {state.block}" if state.block else "starting both trainings"
        so_far = f"; so far B is {faster_or_slower(state.so_far.speedup)}" if state.so_far is not None else ""
        left = f"; at most {_time(state.seconds_left)} more" if state.seconds_left is not None else ""
        pair = f"pair {state.pair} of {plan.pairs}"
        _say(f"{pair}, {doing}{so_far}{left}", f"{pair}{so_far}{left}" if state.pair > reported else "")
        reported = state.pair

    with _announced(before):
        return compare_live(plan, component_of, report)


def run_experiment(plan: SlowdownPlan, iteration_ns: float) -> dict[str, Experiment]:
    """Slow operations of a training down, with progress on stderr."""
    iterations = (2 + len(SLOWDOWN_SIZES)) * len(plan.operations) * (plan.settle + plan.counted)
    least = duration(LEAST_BLOCKS * iterations * 1.3 * iteration_ns)
    before = (
        f"running rlprof {plan.command} again, with {', '.join(plan.operations)} slowed down by 50 and 100%: at least"
        f" {least} after its start, at most {_time(plan.seconds)}"
    )

    def report(state: SlowdownProgress) -> None:
        found = [f"{name} costs {shown(one.cost)}" for name, one in state.so_far.items() if one.cost is not None]
        doing = f"block {state.block}" if state.block else "starting"
        so_far = f"; so far {', '.join(found)}" if found else ""
        process = f"process {state.process}"
        line = f"{process}, {doing}{so_far}; at most {_time(state.seconds_left)} more"
        _say(line, "" if state.block else f"{process}{so_far}")

    with _announced(before):
        return run_slowdowns(plan, report)


def _time(seconds: float) -> str:
    return duration(seconds * 1e9)


@contextmanager
def _announced(text: str) -> Iterator[None]:
    click.echo(text, err=True)
    with ends_well():
        try:
            yield
        finally:
            click.echo(err=True)


@contextmanager
def ends_well() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit in this block, so that everything is closed. Exit codes are a shell's."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    numbers = [number for number in (signal.SIGTERM, getattr(signal, "SIGHUP", None)) if number is not None]
    before = {number: signal.signal(number, _exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _say(on_terminal: str, in_file: str) -> None:
    """Overwrite one line on a terminal. In a file, write a line per pair or process, or none if it is empty."""
    if sys.stderr is not None and sys.stderr.isatty():
        click.echo(f"\r\x1b[2K{on_terminal}", err=True, nl=False)
    elif in_file:
        click.echo(in_file, err=True)
