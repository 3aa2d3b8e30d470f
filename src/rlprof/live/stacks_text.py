"""The stacks of a training as text and JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rlprof.analysis.figures import many
from rlprof.live.stacks import SIGNAL, Line, ProcessStacks, ThreadStack
from rlprof.render.layout import Layout, as_text

SCHEMA_VERSION = 1
_INDENT = 2


@dataclass(frozen=True, slots=True)
class Stacks:
    """The stacks of a session at one moment."""

    session: str
    """Name of the session's folder."""
    folder: str
    """The training's working directory. Paths inside it are shown without it."""
    processes: tuple[ProcessStacks, ...]


def render(stacks: Stacks, console: Console) -> None:
    layout = Layout(console)
    for place, process in enumerate(stacks.processes):
        if place:
            console.print()
        _render_process(process, stacks.folder, layout, console)


to_text = as_text(render)


def to_json(stacks: Stacks) -> str:
    content = {
        "schema_version": SCHEMA_VERSION,
        "session": stacks.session,
        "processes": [
            {
                **asdict(process),
                "threads": [
                    {
                        "name": thread.name,
                        "is_main": thread.is_main,
                        "hidden": None if thread.hidden < 0 else thread.hidden,
                        "frames": [
                            {"file": file, "line": line or None, "function": function, "source": source}
                            for file, line, function, source in thread.frames
                        ],
                    }
                    for thread in process.threads
                ],
            }
            for process in stacks.processes
        ],
    }
    return msgspec.json.format(msgspec.json.encode(content)).decode() + "\n"


def _render_process(process: ProcessStacks, folder: str, layout: Layout, console: Console) -> None:
    kind = "driver" if process.is_driver else "worker"
    end = f" ({kind}, process {process.pid})"
    title = Text(layout.name(process.name, max(10, layout.width - len(end))), style="bold")
    console.print(title + Text(end, style="dim"), soft_wrap=True)
    if process.problem:
        layout.line(process.problem, indent=_INDENT)
    if process.answered == SIGNAL:
        layout.line("Native code holds Python's interpreter lock (GIL), so no Python code runs.", indent=_INDENT)
    for alike in grouped(process.threads):
        _render_threads(alike, folder, layout, console)


def _render_threads(threads: Sequence[ThreadStack], folder: str, layout: Layout, console: Console) -> None:
    """Threads that have the same stack, once."""
    first = threads[0]
    others = f" and {many(len(threads) - 1, 'other thread')}" if len(threads) > 1 else ""
    name = layout.name(first.name, max(10, layout.width - _INDENT - len(others)))
    console.print(Text(f"{'':{_INDENT}}{name}{others}", style="bold"), soft_wrap=True)
    frames = _without_start(first.frames)
    if first.hidden or len(frames) < len(first.frames):
        hidden = first.hidden + len(first.frames) - len(frames)
        shown = many(hidden, "outer call") if first.hidden >= 0 else "outer calls"
        layout.line(f"... {shown} not shown", "dim", indent=2 * _INDENT)
    for file, line, function, source in frames:
        inside = f" in {layout.name(function, max(8, layout.width // 3))}"
        room = max(8, layout.width - 2 * _INDENT - cell_len(inside))
        where = layout.path(f"{short_file(file, folder)}:{line or '?'}", room)
        console.print(Text(f"{'':{2 * _INDENT}}{where}") + Text(inside, style="dim"), soft_wrap=True)
        if source:
            shown = layout.name(source, max(20, layout.width - 3 * _INDENT))
            console.print(Text(f"{'':{3 * _INDENT}}{shown}", style="cyan"), soft_wrap=True)


def grouped(threads: Sequence[ThreadStack]) -> list[list[ThreadStack]]:
    """Threads by stack, in the order of the first of each. The threads of a pool often wait at the same place."""
    groups: dict[tuple[object, ...], list[ThreadStack]] = {}
    for thread in threads:
        groups.setdefault((thread.is_main, thread.frames, thread.hidden), []).append(thread)
    return list(groups.values())


def _without_start(frames: Sequence[Line]) -> Sequence[Line]:
    """Without the calls with which Python starts a thread or a process, which are the same in all."""
    for place in range(len(frames) - 2, -1, -1):
        file, _, function, _ = frames[place]
        if function in _STARTS and file.endswith(("/threading.py", "/multiprocessing/process.py")):
            return frames[place + 1 :]
    return frames


_STARTS = ("run", "Thread.run", "BaseProcess.run", "_bootstrap_inner", "Thread._bootstrap_inner")


def short_file(file: str, folder: str) -> str:
    """Relative to the training's working directory, or to the folder of Python's libraries."""
    if folder and Path(file).is_relative_to(folder):
        return str(Path(file).relative_to(folder))
    return _LIBRARIES.sub("", file)


_LIBRARIES = re.compile(r".*/lib(?:64)?/python3(?:\.\d+t?)?/(?:(?:site|dist)-packages/)?")
