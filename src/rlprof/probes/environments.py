"""Which environments a training collects from, and which it only evaluates with.

All steps between two updates are one stretch. These rules are applied in this order:

1. Environments that are stepped alternately, each continuing its episode after the other's step, are a group.
2. If no group of a stretch is known to train, the group that was stepped last before the update trains.
3. If one is, the other groups of that stretch are evaluated. Their steps are not counted.

A program that runs an episode in each of a list of environments before every update breaks rule 2, because it looks
like an evaluation before the training. So if three or more of them come back in the second stretch, and none continues
an episode, they all train.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

MOST_KNOWN = 4096
"""Limit for remembered environments. Those that allow no weak references are only forgotten by it."""


class Group:
    """Environments that are stepped alternately. All counts are of the current stretch."""

    def __init__(self) -> None:
        self.size = 1
        self.trains = False
        self.steps = self.episodes = 0
        self.counted = (0, 0)
        """Steps and episodes that the ledger has already counted."""
        self.continues = False
        """An episode went on after the steps of another group had interrupted it."""
        self.first_seen = (0, 0)
        """Steps and episodes of the first stretch, as long as it may have been an evaluation."""
        self.merged: Group | None = None

    def begin_stretch(self) -> None:
        self.steps = self.episodes = 0
        self.counted = (0, 0)
        self.continues = False


class Record:
    """One environment. Times are counted in blocks. A block is a run of calls of the same environment."""

    def __init__(self) -> None:
        self._group = Group()
        self.called = self.reset = self.stepped = 0

    @property
    def group(self) -> Group:
        while self._group.merged is not None:
            self._group = self._group.merged
        return self._group


class Environments:
    """The environments of a driver's loop."""

    def __init__(self, died: Callable[[], None]) -> None:
        """died: called when an environment is deleted, because the next one may get its address."""
        self._died = died
        self._by_id: dict[int, tuple[Any, Record]] = {}
        self._block = 0
        self._chosen_at = 0
        """The last block for which a forward pass has chosen actions."""
        self.current: Record | None = None
        self.stepped: Record | None = None
        """The environment that was stepped last."""
        self.stretch: list[Group] = []
        """Groups that were stepped since the last update, in order."""
        self.all_trained = False
        """The last stretch has shown that all environments of the first one train."""

    def switch_to(self, env: Any, resets: bool, action_chosen: bool) -> tuple[Group, bool]:
        """The driver calls another environment than last time. Returns its group, and True if a forward pass has chosen
        its action. One forward pass may choose for a whole group, one step each.

        action_chosen: a forward pass has chosen actions since an environment was called.
        """
        record, before = self._record_of(env), self.stepped
        if before is not None and not resets and before.called > record.called > 0:  # it was interrupted
            if before.group is not record.group and before.reset < record.called:
                self._merge(before.group, record.group)
            record.group.continues |= before.group is not record.group
        self._block += 1
        if action_chosen:
            self._chosen_at = self._block
        elif not resets and before is not None and before.group is record.group:
            action_chosen = record.stepped < self._chosen_at
        record.called = self._block
        if resets:
            record.reset = self._block
        self.current = record
        return record.group, action_chosen

    def credit(self, steps: int, episodes: int, counted: bool) -> None:
        """Count steps of the current environment."""
        if self.current is None or not steps:
            return
        self.stepped = self.current
        self.current.stepped = self._block
        group = self.current.group
        if group not in self.stretch:
            self.stretch.append(group)
        group.steps += steps
        group.episodes += episodes
        if counted:
            group.counted = group.counted[0] + steps, group.counted[1] + episodes

    def end_stretch(self, first: bool) -> tuple[int, int]:
        """An update begins. Returns the steps and episodes that are missing in the count, or too many if negative."""
        groups, last = self.stretch, self.stepped.group if self.stepped is not None else None
        if last is not None and groups and not any(group.trains for group in groups):
            last.trains = True
        elif not any(group.trains and group.continues for group in groups):
            again = [group for group in groups if group.first_seen != (0, 0)]
            for group in again if len(again) > 1 else ():
                group.trains = True
        open_since_first = [record.group for _, record in self._by_id.values() if record.group.first_seen != (0, 0)]
        self.all_trained = bool(open_since_first) and all(group.trains for group in open_since_first)
        steps = episodes = 0
        for group in groups:
            if group.trains:
                steps += group.first_seen[0] + group.steps
                episodes += group.first_seen[1] + group.episodes
            steps -= group.counted[0]
            episodes -= group.counted[1]
        self._forget_first()
        for group in groups:
            if first and not group.trains:
                group.first_seen = group.steps, group.episodes
            group.begin_stretch()
        self.stretch = []
        return steps, episodes

    def _forget_first(self) -> None:
        for _, record in self._by_id.values():
            record.group.first_seen = (0, 0)

    def _merge(self, one: Group, other: Group) -> None:
        other.merged = one
        one.size += other.size
        one.trains |= other.trains
        one.steps += other.steps
        one.episodes += other.episodes
        one.counted = one.counted[0] + other.counted[0], one.counted[1] + other.counted[1]
        if other in self.stretch:
            self.stretch.remove(other)
            if one not in self.stretch:
                self.stretch.append(one)

    def _record_of(self, env: Any) -> Record:
        known = self._by_id.get(id(env))
        if known is not None:
            return known[1]
        try:
            inner = env.unwrapped  # the same environment, whichever of its wrappers is called
        except Exception:
            inner = env
        known = self._by_id.get(id(inner))
        record = Record() if known is None else known[1]
        for one in (inner, env):
            self._remember(one, record)
        return record

    def _remember(self, env: Any, record: Record) -> None:
        key = id(env)
        if key in self._by_id:
            return
        if len(self._by_id) >= MOST_KNOWN:
            self._by_id.pop(next(iter(self._by_id)))
        by_id, died = self._by_id, self._died

        def forget(_: Any) -> None:
            by_id.pop(key, None)
            died()

        try:
            held = ref(env, forget)
        except TypeError:
            held = None
        by_id[key] = held, record
