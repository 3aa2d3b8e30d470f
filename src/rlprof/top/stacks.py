"""The Python stacks of the training's processes as text."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len
from rich.text import Text

from rlprof.analysis.figures import many
from rlprof.live.stacks import ProcessStacks, ThreadStack, request_stacks
from rlprof.top.drawing import name_of, wrapped
from rlprof.top.look import Look

INNERMOST = 4
"""Lines of the main thread that the dashboard shows of a stuck training."""

StackReport = tuple[ProcessStacks, ...]


def ask_for_stacks(folder: Path) -> StackReport:
    return request_stacks(folder)


def innermost(found: StackReport) -> tuple[str, ...]:
    """The last calls of the driver's main thread, the most recent last."""
    driver = next((process for process in found if process.is_driver and process.threads), None)
    if driver is None:
        return ()
    frames = driver.threads[0].frames[-INNERMOST:]
    return tuple(
        f"{_place(file, line)} {function}{f': {source}' if source else ''}" for file, line, function, source in frames
    )


def stack_lines(found: StackReport, width: int, look: Look) -> list[Text]:
    """All threads of all processes, the most recent call last."""
    lines: list[Text] = []
    for process in found:
        if lines:
            lines.append(Text())
        name = name_of(process.name, max(10, width - 24), look)
        lines.append(Text.assemble((name, look.style("title")), (f"  process {process.pid}", look.style("muted"))))
        if process.problem:
            lines += [Text(line, look.style("warn")) for line in wrapped(process.problem, width, 3, look)]
        for thread in process.threads:
            lines += _thread(thread, width, look)
    return lines


def _thread(thread: ThreadStack, width: int, look: Look) -> list[Text]:
    lines = [Text(f"  {name_of(thread.name, width - 2, look)}", look.style("figure"))]
    if thread.hidden:
        hidden = "outer calls" if thread.hidden < 0 else many(thread.hidden, "outer call")
        lines.append(Text(f"    {hidden} left out", look.style("muted")))
    for file, line, function, source in thread.frames:
        place = name_of(_place(file, line), max(12, width - 24), look)
        called = name_of(function, max(4, width - cell_len(place) - 6), look)
        lines.append(Text.assemble("    ", (place, look.style("accent")), (f" {called}", look.style("muted"))))
        if source:
            lines.append(Text(f"      {name_of(' '.join(source.split()), max(8, width - 6), look)}", look.style("ink")))
    return lines


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file
