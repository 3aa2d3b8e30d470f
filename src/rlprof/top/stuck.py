"""Where a stuck training is: the calls at which its lanes are, those that hold up the others first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from rlprof.ledger.code_files import USER, owner_of
from rlprof.live.frame import LaneNow, Stuck
from rlprof.live.stacks import Line, ProcessStacks, ThreadStack
from rlprof.live.stacks_text import Stacks, short_file
from rlprof.render.names import bounded, literal, short_path
from rlprof.top.drawing import Panel, name_of, wrapped
from rlprof.top.look import Look

MOST_CALLS = 4
"""Most calls of the user's code that are shown of one thread."""
MOST_PLACES = 50
_UNKNOWN = "???"
"""faulthandler's name of a file that it cannot read."""


@dataclass(slots=True)
class _Place:
    """One thread, or several that are at the same place."""

    process: ProcessStacks
    thread: ThreadStack | None
    """None if the process did not answer."""
    calls: tuple[Line, ...]
    """The most important one first."""
    others: int = 0
    """Number of other threads that are at the same place."""

    def shown(self, most: int) -> list[Line]:
        """The most important calls, in the order of the stack."""
        stack = self.thread.frames if self.thread is not None else ()
        return sorted(self.calls[:most], key=stack.index)


def stuck_here(stuck: Stuck, stacks: Stacks, width: int, most: int, look: Look) -> Panel:
    """At most `most` lines. Each place has one line if there is no room for more."""
    places = _places(stuck, stacks.processes)
    note = "s: all stacks"
    if len(places) * 2 > most:
        return Panel("Stuck here", [_line(place, stacks, width, look) for place in places[:most]], note)
    counts = [1] * len(places)
    room = most - 2 * len(places)
    for wanted in range(2, MOST_CALLS + 2):
        for number, place in enumerate(places):
            if room and len(place.calls) >= wanted:
                counts[number] += 1
                room -= 1
    lines: list[Text] = []
    for place, count in zip(places, counts):
        lines.append(Text(name_of(_heading(place), width, look), look.style("figure")))
        lines += [Text.assemble("  ", _call(call, stacks, width - 2, look)) for call in place.shown(count)]
        if place.thread is None:
            problem = wrapped(place.process.problem, width - 2, 2 if room else 1, look)
            room -= len(problem) - 1
            lines += [Text(f"  {line}", look.style("warn")) for line in problem]
    return Panel("Stuck here", lines, note)


def natural_lines(stuck: Stuck, stacks: Stacks) -> int:
    """Lines that all places would fill."""
    return sum(1 + (2 if place.thread is None else len(place.calls)) for place in _places(stuck, stacks.processes))


def _places(stuck: Stuck, processes: Sequence[ProcessStacks]) -> list[_Place]:
    """Lanes that work inside an operation, the driver, lanes that wait, and then the other threads that run the user's
    code."""
    found: dict[object, _Place] = {}
    seen: set[tuple[int, int]] = set()
    for process, thread in _threads(stuck, processes):
        if (process.pid, id(thread)) in seen:
            continue
        seen.add((process.pid, id(thread)))
        if thread is None and not process.problem:
            continue
        key: object = (process.is_driver, thread.frames) if thread is not None else process.pid
        if key in found:
            found[key].others += 1
        else:
            found[key] = _Place(process, thread, _calls(thread) if thread is not None else ())
    return list(found.values())[:MOST_PLACES]


def _threads(stuck: Stuck, processes: Sequence[ProcessStacks]) -> Iterator[tuple[ProcessStacks, ThreadStack | None]]:
    by_name = {process.name: process for process in reversed(processes)}
    driver = [process for process in processes if process.is_driver]
    others = [lane for lane in stuck.lanes if not lane.on_driver]
    for lane in others:
        if not lane.waits:
            yield from _threads_of(lane, by_name, driver)
    for process in driver:
        names = {lane.name for lane in stuck.lanes if lane.on_driver}
        yield process, next((thread for thread in process.threads if thread.name in names), _main(process))
    for lane in others:
        if lane.waits:
            yield from _threads_of(lane, by_name, driver)
    for process in processes:
        yield from ((process, thread) for thread in process.threads if _users(thread))
        if process.problem:
            yield process, None


def _threads_of(
    lane: LaneNow, by_name: dict[str, ProcessStacks], driver: Sequence[ProcessStacks]
) -> Iterator[tuple[ProcessStacks, ThreadStack | None]]:
    """A worker process by its name, and a thread of the driver by its own."""
    if lane.kind == "process":
        if lane.name in by_name:
            yield by_name[lane.name], _main(by_name[lane.name])
        return
    for process in driver:
        yield from ((process, thread) for thread in process.threads if thread.name == lane.name)


def _main(process: ProcessStacks) -> ThreadStack | None:
    return process.threads[0] if process.threads else None


def _calls(thread: ThreadStack) -> tuple[Line, ...]:
    """The innermost call of the user's code, the innermost call of all, and then those around the first one."""
    users = _users(thread)[-MOST_CALLS:][::-1]
    innermost = thread.frames[-1:]
    if not users:
        return innermost
    below = innermost if innermost[0] is not users[0] else ()
    return (users[0], *below, *users[1:])


def _users(thread: ThreadStack) -> list[Line]:
    """The calls of the user's code, the most recent one last. Those around the start of a thread or of a process are
    left out: a process that was forked has them of its parent."""
    start = 0
    for place, (file, _, function, _) in enumerate(thread.frames):
        if file.endswith(("/threading.py", "/multiprocessing/process.py")) and "_bootstrap" in function:
            start = place + 1
    return [call for call in thread.frames[start:] if _is_users(call[0])]


def _is_users(file: str) -> bool:
    """Also for a training that another Python runs: `short_file` cuts the folder of any Python's libraries."""
    return file != _UNKNOWN and owner_of(file) == USER and short_file(file, "") == file


def _heading(place: _Place) -> str:
    process, thread = place.process, place.thread
    name = process.name if thread is None else f"{process.name}, {thread.name}"
    if place.others:
        return f"{name}, and {place.others:,} other{'s' if place.others > 1 else ''}"
    return f"{name} (process {process.pid})"


def _line(place: _Place, stacks: Stacks, width: int, look: Look) -> Text:
    """`env-2: envs.py:9 in step: self.wait()`. The thread is the main one, if it has no name."""
    process, thread = place.process, place.thread
    others = f" and {place.others:,} more" if place.others else ""
    name = process.name if thread is None or thread.is_main else f"{process.name}, {thread.name}"
    shown = name_of(name, max(8, min(40, width // 3)), look)
    left = Text(f"{shown}{others}: ", look.style("figure"))
    for call in place.calls[:1]:
        return left.append_text(_call(call, stacks, max(1, width - left.cell_len), look))
    return left.append(name_of(place.process.problem, max(1, width - left.cell_len), look), look.style("warn"))


def _call(call: Line, stacks: Stacks, width: int, look: Look) -> Text:
    """`envs.py:9 in step: self.wait()`. What does not fit is cut from its end."""
    file, line, function, source = call
    where = f"{short_file(file, stacks.folder)}{f':{line}' if line else ''}"
    place = short_path(literal(bounded(where, 500), look.ascii), max(12, width // 2), look.glyphs.ellipsis)
    called = f" in {name_of(function, max(8, width // 3), look)}"
    text = f": {literal(bounded(' '.join(source.split())), look.ascii)}" if source else ""
    ink = look.style("ink") if _is_users(file) else look.style("muted")
    shown = Text.assemble((place, look.style("accent")), (called, look.style("muted")), (text, ink))
    if shown.cell_len > width:
        shown.truncate(max(0, width - len(look.glyphs.ellipsis)))
        shown.append(look.glyphs.ellipsis)
    return shown
