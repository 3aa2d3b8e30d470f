"""The Python stacks of the training's processes as text."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len
from rich.text import Text

from rlprof.analysis.figures import many
from rlprof.live.stacks import ThreadStack, request_stacks
from rlprof.live.stacks_text import Stacks, short_file
from rlprof.session.live import LiveSession
from rlprof.top.drawing import name_of, wrapped
from rlprof.top.look import Look


def ask_for_stacks(folder: Path) -> Stacks:
    processes = request_stacks(folder)
    with LiveSession(folder) as session:
        return Stacks(folder.name, session.info.folder, processes)


def stack_lines(found: Stacks, width: int, look: Look) -> list[Text]:
    """All threads of all processes, the most recent call last."""
    lines: list[Text] = []
    for process in found.processes:
        if lines:
            lines.append(Text())
        name = name_of(process.name, max(10, width - 24), look)
        lines.append(Text.assemble((name, look.style("title")), (f"  process {process.pid}", look.style("muted"))))
        if process.problem:
            lines += [Text(line, look.style("warn")) for line in wrapped(process.problem, width, 3, look)]
        for thread in process.threads:
            lines += _thread(thread, found.folder, width, look)
    return lines


def _thread(thread: ThreadStack, folder: str, width: int, look: Look) -> list[Text]:
    lines = [Text(f"  {name_of(thread.name, width - 2, look)}", look.style("figure"))]
    if thread.hidden:
        hidden = "outer calls" if thread.hidden < 0 else many(thread.hidden, "outer call")
        lines.append(Text(f"    {hidden} left out", look.style("muted")))
    for file, line, function, source in thread.frames:
        place = name_of(_place(short_file(file, folder), line), max(12, width - 24), look)
        called = name_of(function, max(4, width - cell_len(place) - 6), look)
        lines.append(Text.assemble("    ", (place, look.style("accent")), (f" {called}", look.style("muted"))))
        if source:
            lines.append(Text(f"      {name_of(' '.join(source.split()), max(8, width - 6), look)}", look.style("ink")))
    return lines


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file
