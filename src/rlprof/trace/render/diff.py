"""The difference of two sets of traces as text: the verdict, the phase that explains it, operators and kernels."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.console import Console

from rlprof.analysis.figures import as_percent, count, duration, many
from rlprof.render.layout import Column, Layout, plain
from rlprof.trace.analysis.diff import FASTER, NOISE, NOT_JUDGED, SHIFTED, SLOWER, Change, TraceDiff
from rlprof.trace.render.tables import WHY

MOST_ROWS = 20


def to_text(diff: TraceDiff, width: int = 120) -> str:
    return plain(partial(render, diff), width)


def render(diff: TraceDiff, console: Console) -> None:
    layout = Layout(console)
    layout.line(f"A: {_names(diff.before)}", "dim")
    layout.line(f"B: {_names(diff.after)}", "dim")
    layout.line(verdict(diff), "bold")
    if explanation := cause(diff):
        layout.line(explanation, "bold")
    layout.line(_basis(diff))
    what = "per step" if diff.marked else "in total"
    for title, changes in (
        (f"Phases, {what}", diff.phases),
        (f"Why the GPU is idle, {what}", diff.idle),
        (f"Operators, {what}, by their own time on the host", diff.operators),
        (f"Kernels, {what}", diff.kernels),
    ):
        _table(title, changes, layout, _UNCALLED if changes is diff.idle else _COLUMNS)


def verdict(diff: TraceDiff) -> str:
    step, what = diff.step, "A step" if diff.marked else "The whole trace"
    times = f"{duration(step.before)} in A, {duration(step.after)} in B"
    noise = f"{what} takes {times}. Differences below {duration(step.noise or 0)} are noise here"
    if diff.verdict == NOISE:
        return f"No difference beyond noise. {noise}, and no phase differs by more than its own noise."
    if diff.verdict == SHIFTED:
        return f"{noise}, but some phases differ by more than their own noise."
    if diff.verdict == NOT_JUDGED:
        return f"{what} takes {times}. One trace per side without steps cannot show whether that is noise."
    more = abs(step.difference)
    return (
        f"{what} is {step.verdict} in B: {times}, {duration(more)} ({as_percent(more / step.before)}) "
        f"{'more' if step.verdict == SLOWER else 'less'}."
    )


def cause(diff: TraceDiff) -> str | None:
    found = next((phase for phase in diff.phases if phase.name == diff.cause), None)
    if found is None:
        return None
    times = f"{duration(found.before)} in A, {duration(found.after)} in B"
    if diff.verdict == SHIFTED:
        return f"The largest change is in {found.name}: {times}."
    share = as_percent(found.difference / diff.step.difference)
    return f"The cause is {found.name}, which explains {share} of the difference: {times}."


def _basis(diff: TraceDiff) -> str:
    sizes = (
        f"{many(len(diff.before), 'trace')} with {many(diff.steps_before, 'step')} in A, "
        f"{many(len(diff.after), 'trace')} with {many(diff.steps_after, 'step')} in B."
    )
    if diff.unit == "runs":
        return f"{sizes} Noise is the 95 % interval of a t-test between runs. One name in 20 is outside by chance."
    if diff.step.noise is None:
        return f"{sizes} Give several traces per side."
    return (
        f"{sizes} One trace per side cannot show how much runs differ, and runs differ more than steps. So only a "
        "change by more than a factor of two counts. Give several traces per side for more."
    )


def _names(paths: tuple[str, ...]) -> str:
    return ", ".join(Path(path).name for path in paths)


_COLUMNS: tuple[Column[Change], ...] = (
    Column("A", 8, lambda change: duration(change.before)),
    Column("B", 8, lambda change: duration(change.after)),
    Column("B - A", 9, lambda change: f"{'+' if change.difference > 0 else '-'}{duration(abs(change.difference))}"),
    Column("noise", 8, lambda change: "" if change.noise is None else duration(change.noise), 1),
    Column("calls A", 7, lambda change: count(change.calls_before), 2),
    Column("calls B", 7, lambda change: count(change.calls_after), 2),
    Column("", 10, lambda change: change.verdict),
)
_UNCALLED = tuple(column for column in _COLUMNS if not column.header.startswith("calls"))


def _table(title: str, changes: tuple[Change, ...], layout: Layout, columns: tuple[Column[Change], ...]) -> None:
    if not changes:
        return
    layout.heading(title)
    shown = changes[:MOST_ROWS]
    styles = [{SLOWER: "red", FASTER: "green", NOISE: "dim"}.get(change.verdict, "") for change in shown]
    names = [WHY[change.name] if columns is _UNCALLED else change.name for change in shown]
    layout.table("", names, shown, columns, styles)
    if hidden := len(changes) - len(shown):
        layout.line(f"{hidden:,} more with a smaller difference are in --format json.")
