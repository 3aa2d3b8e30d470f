"""The same nets without objects.

Stations and arms alternate along one route, and a wafer never overtakes another: the first wafer of a place is the one
whose number is the count of wafers that have left the place. So the place of each wafer, and since when it is there, is
the whole marking. No search is needed, and time is not counted token by token. The observations of all nets are in one
buffer, in which a step writes only what has changed.
"""

from __future__ import annotations

import numpy as np

from rlprof.workloads.petri import rules
from rlprof.workloads.petri.net import Bools, Ints, Nets

_NEVER = 1 << 40
"""Seconds."""
_STEP = rules.FIRING_SECONDS
_HOPS = len(rules.HOPS)


def _along_the_route(stations: list[int], arms: list[int]) -> tuple[int, ...]:
    """One figure per place: LP, d1, s1, d2, ..., LP_done."""
    route = [0] * (len(stations) + len(arms))
    route[0::2], route[1::2] = stations, arms
    return tuple(route)


_LIMIT = _along_the_route([rules.limit_of(name) or _NEVER for name in rules.STATIONS], [_NEVER] * _HOPS)
_PROCESSING = _along_the_route(list(rules.PROCESSING_SECONDS), [0] * _HOPS)
_OVERTIME = _along_the_route(
    [seconds if name in rules.LIMITED else _NEVER for name, seconds in zip(rules.STATIONS, rules.PROCESSING_SECONDS)],
    [rules.ARM_SECONDS] * _HOPS,
)
_CAPACITY = _along_the_route(list(rules.CAPACITIES), [1] * _HOPS)
_INDEX = _along_the_route([*range(_HOPS + 1)], [*range(_HOPS + 1, 2 * _HOPS + 1)])
_TYPE = _along_the_route([rules.type_of(name) for name in rules.STATIONS], [rules.type_of(name) for name in rules.ARMS])
_DONE = 2 * _HOPS

# Transition `k` of the route takes a wafer from its place `k` to the next; the even ones are the u-transitions.
_ROUTE_OF_ACTION = (*range(0, _DONE, 2), *range(1, _DONE, 2))
_ACTION_OF_ROUTE = tuple(_ROUTE_OF_ACTION.index(k) for k in range(_DONE))
_ROBOT = tuple(list(rules.ROBOTS).index(rules.robot_of(rules.HOPS[k // 2])) for k in range(_DONE))
_ONLY_WAIT = bytes([0] * rules.WAIT + [1])
_SEEN_AT_FIRST = np.array([x for n in range(rules.WAFERS) for x in (n + 1, 0, rules.AT_A_PORT, 0, -1)]).data


class _TurboNet:
    """One cluster tool. `seen` and `mask` are its rows of the buffers of all nets."""

    def __init__(self, seen: memoryview, mask: memoryview) -> None:
        self._seen = seen
        self._mask = mask
        self.reset()

    def reset(self) -> None:
        self._now = 0
        self._route = [0] * rules.WAFERS
        self._since = [0] * rules.WAFERS
        self._held = [rules.WAFERS, *[0] * _DONE]
        self._left = [0] * _DONE
        """Count of wafers that have left each place, which is the number of its first wafer."""
        self._free = [True] * len(rules.ROBOTS)
        self._seen[:] = _SEEN_AT_FIRST
        self._enable()

    def step(self, action: int) -> tuple[int, bool]:
        moving, k = -1, 0
        if action != rules.WAIT:
            if not self._mask[action]:
                raise ValueError(f"{rules.TRANSITIONS[action]} is not enabled")
            k = _ROUTE_OF_ACTION[action]
            moving = self._left[k]
        reward, scrap = self._pass_time(moving)
        if moving >= 0:
            self._move(moving, k)
            if k == _DONE - 1:
                reward += rules.WAFER_REWARD
        finished = self._held[_DONE] == rules.WAFERS
        self._enable()
        return reward + rules.SCRAP_REWARD * scrap + rules.FINISH_REWARD * finished, scrap or finished

    def _pass_time(self, moving: int) -> tuple[int, bool]:
        """Let time pass. Returns the reward, and True if there is scrap. A wafer being moved is in no place."""
        self._now = now = self._now + _STEP
        seen, route, since = self._seen, self._route, self._since
        reward, scrap = rules.TIME_REWARD * _STEP, False
        for wafer in range(rules.WAFERS):
            seen[5 * wafer + 3] = now - since[wafer]
        for wafer in range(self._left[_DONE - 1], self._left[0]):  # neither waiting at LP nor done
            if wafer == moving:
                continue
            place = route[wafer]
            seconds = now - since[wafer]
            if seconds <= _PROCESSING[place]:
                reward += rules.PROCESSING_REWARD * _STEP
            elif seconds > _OVERTIME[place]:
                reward += rules.OVERTIME_REWARD * _STEP
            limit = _LIMIT[place]
            if limit != _NEVER:
                seen[5 * wafer + 4] = limit - seconds
                scrap = scrap or seconds > limit
        return reward, scrap

    def _move(self, wafer: int, k: int) -> None:
        place = k + 1
        self._route[wafer] = place
        self._since[wafer] = self._now
        self._held[k] -= 1
        self._held[place] += 1
        self._left[k] += 1
        self._free[_ROBOT[k]] = k % 2 == 1
        seen, at = self._seen, 5 * wafer
        limit = _LIMIT[place]
        seen[at + 1] = _INDEX[place]
        seen[at + 2] = _TYPE[place]
        seen[at + 3] = 0
        seen[at + 4] = -1 if limit == _NEVER else limit

    def _enable(self) -> None:
        """Mask of the transitions that may fire, which are only those from places with a wafer."""
        mask, held, left = self._mask, self._held, self._left
        mask[:] = _ONLY_WAIT
        now, since, free = self._now, self._since, self._free
        for k in {0, *self._route[left[_DONE - 1] : left[0]]}:
            if (
                held[k]
                and held[k + 1] < _CAPACITY[k + 1]
                and now - since[left[k]] >= _PROCESSING[k]
                and (k % 2 or free[_ROBOT[k]])
            ):
                mask[_ACTION_OF_ROUTE[k]] = 1


class TurboNets(Nets):
    def __init__(self, count: int) -> None:
        self._seen = np.zeros((count, rules.OBSERVATION), np.int64)
        self._masks = np.zeros((count, rules.ACTIONS), np.bool_)
        self._nets = [_TurboNet(seen.data, mask.data) for seen, mask in zip(self._seen, self._masks.view(np.uint8))]

    def observations(self) -> Ints:
        return self._seen.copy()

    def masks(self) -> Bools:
        return self._masks.copy()
