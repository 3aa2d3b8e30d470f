"""What to change, what changed, and what was noted during the run."""

from __future__ import annotations

import time

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from rlprof.analysis.advice.check import changed_copy
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.changes import Change
from rlprof.analysis.figures import duration
from rlprof.live.frame import Frame
from rlprof.report.answer import gain_text, headline
from rlprof.session.records import Mark
from rlprof.top.drawing import Panel, name_of, wrapped
from rlprof.top.look import Look
from rlprof.top.stuck import natural_lines, stuck_here
from rlprof.top.view import View

FIRST = 6
"""Most lines of the first finding."""
MOST_ADVICE, MOST_STUCK = 12, 24


def advice(frame: Frame, view: View, width: int, most: int, look: Look) -> Panel:
    """The first finding: cause, place, gain, change and check, as far as they fit. Or where a training is stuck."""
    if frame.stuck is not None and view.stacks is not None:
        return stuck_here(frame.stuck, view.stacks, width, most, look)
    if frame.findings:
        first, *others = frame.findings
        lines = _finding(first, width, min(most, FIRST), look)
        hidden = len(others)
        for number, other in enumerate(others, 2):
            found = wrapped(f"{number}. {headline(other)}", width, 2, look, hanging=3)
            if len(lines) + len(found) > most:
                break
            hidden -= 1
            lines += [Text(line, look.style("ink")) for line in found]
        return Panel("Change first", lines, f"{hidden} more in the report" if hidden else "")
    shown = [Text(line, look.style("ink")) for line in wrapped(_no_finding(frame), width, most, look)]
    for note in frame.notes:
        found = wrapped(f"Note: {note.text}", width, max(0, most - len(shown)), look)
        shown += [Text(line, look.style("warn")) for line in found]
    return Panel("Advice", shown)


def _no_finding(frame: Frame) -> str:
    if frame.is_running and not (frame.steps or frame.iterations or frame.findings) and len(frame.parts) <= 2:
        return "No advice yet: nothing of a training was seen so far."
    return frame.no_finding or ("No advice yet." if frame.is_running else "No advice.")


def _finding(finding: Finding, width: int, most: int, look: Look) -> list[Text]:
    """The cause may take two thirds of the lines. The others share the rest in the order of their use."""
    bold, ink, muted = look.style("figure"), look.style("ink"), look.style("muted")
    gain = gain_text(finding)
    cause = wrapped(headline(finding), width, max(1, min(2, most)), look)
    lines = [Text(line, bold) for line in cause]
    left = most - len(lines)
    check = finding.check if changed_copy(finding.check) is None else f"change a copy, then {finding.check}"
    wanted = [(f"Expected: {gain}.", 1, look.style("good"))] if gain else []
    wanted += [(f"Change: {finding.change}", 2, ink), (f"Check: {check}", 1, muted)]
    spare = left - len(wanted)
    for text, longest, style in wanted:
        if left <= 0:
            break
        room = min(longest, left, 1 + max(0, spare))
        found = wrapped(text, width, room, look)
        spare -= len(found) - 1
        left -= len(found)
        lines += [Text(line, style) for line in found]
    return lines


def natural_advice(frame: Frame, view: View, width: int, look: Look) -> int:
    """Lines that the advice would fill. None if it would be beside the point: the training is stuck."""
    if frame.stuck is not None and view.stacks is not None:
        return min(MOST_STUCK, natural_lines(frame.stuck, view.stacks))
    if frame.findings:
        others = (wrapped(f"2. {headline(other)}", width, 2, look, hanging=3) for other in frame.findings[1:])
        return min(MOST_ADVICE, len(_finding(frame.findings[0], width, FIRST, look)) + sum(map(len, others)))
    if frame.stuck is not None:
        return 0
    notes = sum(len(wrapped(f"Note: {note.text}", width, 3, look)) for note in frame.notes)
    return min(MOST_ADVICE, len(wrapped(_no_finding(frame), width, 3, look)) + notes)


def changes(frame: Frame, width: int, most: int, look: Look) -> Panel | None:
    """What takes longer or shorter than before, and the newest alerts. None if there is nothing to say."""
    lines = [Text(_change(change, width, look), _style_of(change, look)) for change in frame.changes]
    marks = [Text(name_of(_mark(mark), width, look), look.style("warn")) for mark in reversed(frame.marks)]
    shown = lines[: max(1, most - 1)] if marks else lines[:most]
    shown += marks[: most - len(shown)]
    if not shown or most < 1:
        return None
    return Panel("Changes" if not marks else "Changes and events" if lines else "Events", shown)


def natural_changes(frame: Frame) -> int:
    return min(3, len(frame.changes) + len(frame.marks))


def _change(change: Change, width: int, look: Look) -> str:
    """With both durations, if there is room."""
    times = f": {duration(change.now_ns)} per call, {duration(change.before_ns)} before"
    slower = change.ratio > 1
    end = f" takes {_times(change.ratio)}x what it took" if slower else f" is {_times(1 / change.ratio)}x as fast as"
    end += f" {_ago(change.ago_s)} ago"
    name = name_of(change.operation, max(8, min(40, width - len(end))), look)
    return name + end + times if cell_len(name + end + times) <= width else name_of(name + end, width, look)


def _mark(mark: Mark) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(mark.time / 1e9))} {mark.kind}: {mark.text}"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}"


def _ago(seconds: float) -> str:
    for unit, length in (("hour", 3600), ("minute", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.0f} {unit}s"
    return f"{seconds:.0f} seconds"


def _style_of(change: Change, look: Look) -> Style:
    return look.style("warn" if change.ratio > 1 else "good")
