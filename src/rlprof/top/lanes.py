"""The lanes of the training: what each is doing at this moment, for how long, and how busy it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from rlprof.analysis.figures import duration, many
from rlprof.live.frame import Frame, LaneNow
from rlprof.live.stuck import inside_s, whole_seconds
from rlprof.render.names import bounded
from rlprof.top.drawing import Panel, fit, name_of
from rlprof.top.header import LATE_SECONDS, age_of
from rlprof.top.look import Look

NOTHING = "no operation"
BUSY = 5
SINCE = 8
_DIGITS = re.compile(r"\d+")


def lanes(frame: Frame, width: int, most: int, look: Look) -> Panel:
    """One line per lane, or per group of lanes with similar names if there is no room for all."""
    known = frame.lanes
    total = len(known) + frame.hidden_lanes
    if not known:
        return Panel("Lanes", [Text("None has recorded anything yet.", look.style("muted"))])
    if not frame.is_running:
        return Panel(many(total, "lane"), [Text("Ended with the run.", look.style("muted"))])
    made = _Lines(frame, width, look)
    made.draw(sorted(known, key=_place), frame.hidden_lanes, most)
    late = " at the last flush" if frame.age_s > LATE_SECONDS else ""
    return Panel(f"{many(total, 'lane')}{late}", made.lines, "busy")


def _place(lane: LaneNow) -> tuple[bool, bool, str, int]:
    """The driver first and ended lanes last; worker-10 after worker-9."""
    stem = lane.name.rstrip("0123456789")
    number = lane.name[len(stem) :]
    return not lane.on_driver, not lane.alive, stem, int(number) if number.isascii() and 0 < len(number) < 19 else -1


def natural_lanes(frame: Frame) -> int:
    """Lines that the lanes would fill."""
    if not frame.is_running:
        return 1
    return max(1, len(frame.lanes) + (1 if frame.hidden_lanes else 0))


class _Lines:
    def __init__(self, frame: Frame, width: int, look: Look) -> None:
        self.lines: list[Text] = []
        self._frame = frame
        self._width, self._look = width, look
        self._busy = BUSY if width >= 24 else 0
        self._since = SINCE if width >= 34 else 0
        self._name = 6

    def draw(self, known: Sequence[LaneNow], hidden: int, most: int) -> None:
        if len(known) + (1 if hidden else 0) <= most:
            self._fit_names([lane.name for lane in known])
            for lane in known:
                self._lane(lane)
            self._more(hidden)
            return
        driver = [lane for lane in known if lane.on_driver][: max(1, most - 1)]
        groups: dict[str, list[LaneNow]] = {}
        for lane in known:
            if not lane.on_driver:
                groups.setdefault(_DIGITS.sub("*", bounded(lane.name)), []).append(lane)
        ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
        room = most - len(driver)
        if hidden or len(ordered) > room:
            room -= 1
        shown = ordered[: max(0, room)]
        self._fit_names([lane.name for lane in driver] + [self._name_of_group(*group) for group in shown])
        for lane in driver:
            self._lane(lane)
        for stem, members in shown:
            self._group(stem, members)
        left = hidden + sum(len(members) for _, members in ordered[len(shown) :])
        if len(self.lines) < most:
            self._more(left)

    def _fit_names(self, names: Sequence[str]) -> None:
        """The column of names is as wide as the longest one, if that leaves enough for the others."""
        room = self._width - self._busy - self._since - 1
        longest = max((cell_len(name_of(name, 40, self._look)) for name in names), default=0)
        self._name = max(6, min(longest, room * 9 // 20))

    def _more(self, number: int) -> None:
        if number:
            self.lines.append(Text(f"{number:,} more", self._look.style("muted")))

    def _lane(self, lane: LaneNow) -> None:
        alive = lane.alive
        since = self._time_in(lane) if alive else ""
        idle = not alive or lane.waits or not lane.doing
        busy = lane.busy if alive else None
        self._line(lane.name, self._doing(lane) if alive else ("ended",), since, busy, idle)

    def _time_in(self, lane: LaneNow) -> str:
        """As in the sentences on a stuck training, if it is stuck."""
        if lane.since_s is None:
            return ""
        stuck = self._frame.stuck
        seconds = inside_s(lane, stuck.seconds, age_of(self._frame)) if stuck is not None and lane.doing else None
        return duration(lane.since_s * 1e9) if seconds is None else whole_seconds(seconds)

    def _doing(self, lane: LaneNow) -> tuple[str, ...]:
        """What the lane does in a few words, and in fewer."""
        if not lane.doing:
            return (NOTHING,)
        inside = name_of(lane.doing[-1], 40, self._look)
        if not lane.waits:
            return (inside if lane.since_s is not None else f"in {inside}",)
        if not lane.waits_for:
            return (f"waits in {inside}", "waits")
        first, more = name_of(lane.waits_for[0], 24, self._look), len(lane.waits_for) - 1
        if not more:
            return (f"{inside}, waits for {first}", f"waits for {first}", "waits")
        return (
            f"{inside}, waits for {first} +{more}", f"waits for {first} +{more}", f"waits for {more + 1} lanes", "waits"
        )  # fmt: skip

    def _group(self, stem: str, members: Sequence[LaneNow]) -> None:
        if len(members) == 1:
            self._lane(members[0])
            return
        alive = [lane for lane in members if lane.alive]
        doing = Counter(name_of(lane.doing[-1], 30, self._look) if lane.doing else NOTHING for lane in alive)
        parts = [f"{number:,} {name}" for name, number in doing.most_common(2)]
        busy = [lane.busy for lane in alive if lane.busy is not None]
        mean = sum(busy) / len(busy) if busy else None
        texts = (", ".join(parts), parts[0]) if parts else ("ended",)
        self._line(self._name_of_group(stem, members), texts, "", mean, not alive)

    def _name_of_group(self, stem: str, members: Sequence[LaneNow]) -> str:
        return stem if len(members) == 1 else f"{len(members):,} {stem}"

    def _line(self, name: str, doing: Sequence[str], since: str, busy: float | None, idle: bool) -> None:
        """The longest of the texts that fits."""
        look = self._look
        since_width = self._since if since else 0
        room = max(0, self._width - self._busy - since_width - self._name - 1)
        text = next((text for text in doing if cell_len(text) <= room), doing[-1])
        line = Text.assemble(
            fit(Text(name_of(name, self._name, look), look.style("ink")), self._name, look), " ",
            fit(Text(text, look.style("muted" if idle else "good")), room, look),
            (f"{since:>{since_width}}" if since_width else "", look.style("muted")),
        )  # fmt: skip
        if self._busy:
            line.append(f"{f'{busy:.0f}%' if busy is not None else '-':>{self._busy}}", look.style("ink"))
        self.lines.append(line)
