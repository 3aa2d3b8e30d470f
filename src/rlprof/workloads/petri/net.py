"""The net as objects: places that hold tokens, transitions with arcs from and to places."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlprof.workloads.petri import rules

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass
class Token:
    """A wafer, or a free robot."""

    number: int
    seconds: int = 0
    """Seconds since the token came to its place."""


@dataclass
class Place:
    name: str
    capacity: int
    processing_seconds: int = 0
    limit: int | None = None
    tokens: deque[Token] = field(default_factory=deque)
    """Tokens, the oldest first."""

    @property
    def ready(self) -> bool:
        """True if the first token may leave."""
        return bool(self.tokens) and self.tokens[0].seconds >= self.processing_seconds

    @property
    def has_room(self) -> bool:
        return len(self.tokens) < self.capacity

    def pass_time(self, seconds: int) -> int:
        """Let time pass. Returns the reward."""
        reward = 0
        allowed = rules.ARM_SECONDS if self.name in rules.ARMS else self.processing_seconds
        for token in self.tokens:
            before, token.seconds = token.seconds, token.seconds + seconds
            in_process = min(token.seconds, self.processing_seconds) - min(before, self.processing_seconds)
            reward += rules.PROCESSING_REWARD * in_process
            if self.limit is not None or self.name in rules.ARMS:
                over = max(0, token.seconds - allowed) - max(0, before - allowed)
                reward += rules.OVERTIME_REWARD * over
        return reward


@dataclass
class Transition:
    """Moves a wafer, and takes or returns a robot."""

    source: Place
    target: Place
    robot: Place
    takes_robot: bool

    @property
    def enabled(self) -> bool:
        return self.source.ready and self.target.has_room and (not self.takes_robot or bool(self.robot.tokens))


class Net:
    def __init__(self) -> None:
        places = [
            Place(name, capacity, seconds, rules.limit_of(name))
            for name, capacity, seconds in zip(rules.STATIONS, rules.CAPACITIES, rules.PROCESSING_SECONDS)
        ]
        places += [Place(name, capacity=1) for name in (*rules.ARMS, *rules.ROBOTS)]
        self.places = {place.name: place for place in places}
        self.transitions = [*self._hops(takes_robot=True), *self._hops(takes_robot=False)]
        self.reset()

    def _hops(self, takes_robot: bool) -> Iterable[Transition]:
        for hop, arm in zip(rules.HOPS, rules.ARMS):
            source, target = (hop[0], arm) if takes_robot else (arm, hop[1])
            robot = self.places[rules.robot_of(hop)]
            yield Transition(self.places[source], self.places[target], robot, takes_robot)

    def reset(self) -> None:
        for place in self.places.values():
            place.tokens.clear()
        self.places["LP"].tokens.extend(Token(number) for number in range(1, rules.WAFERS + 1))
        for robot in rules.ROBOTS:
            self.places[robot].tokens.append(Token(0))

    def mask(self) -> list[bool]:
        """Mask of the enabled actions. Waiting always is."""
        return [*(transition.enabled for transition in self.transitions), True]

    def step(self, action: int) -> tuple[int, bool]:
        """Take an action. Returns the reward, and True if the tool has finished or made scrap."""
        moving = transition = None
        if action != rules.WAIT:
            transition = self.transitions[action]
            if not transition.enabled:
                raise ValueError(f"{rules.TRANSITIONS[action]} is not enabled")
            moving = transition.source.tokens.popleft()
            if transition.takes_robot:
                transition.robot.tokens.popleft()
        reward = rules.TIME_REWARD * rules.FIRING_SECONDS
        for place in self.places.values():
            if place.name not in rules.ROBOTS:
                reward += place.pass_time(rules.FIRING_SECONDS)
        if transition is not None and moving is not None:
            moving.seconds = 0
            transition.target.tokens.append(moving)
            if not transition.takes_robot:
                transition.robot.tokens.append(Token(0))
            if transition.target.name == "LP_done":
                reward += rules.WAFER_REWARD
        scrap = any(
            place.limit is not None and token.seconds > place.limit
            for place in self.places.values()
            for token in place.tokens
        )
        finished = len(self.places["LP_done"].tokens) == rules.WAFERS
        reward += rules.SCRAP_REWARD * scrap + rules.FINISH_REWARD * finished
        return reward, scrap or finished

    def observation(self) -> list[int]:
        """Wafer by wafer: number, place, type of the place, seconds there, seconds to scrap."""
        wafers: dict[int, list[int]] = {}
        for index, place in enumerate(self.places.values()):
            if place.name in rules.ROBOTS:
                continue
            kind = rules.type_of(place.name)
            for token in place.tokens:
                left = -1 if place.limit is None else place.limit - token.seconds
                wafers[token.number] = [token.number, index, kind, token.seconds, left]
        return [feature for number in sorted(wafers) for feature in wafers[number]]


class Nets:
    """Several nets, stepped one after the other."""

    def __init__(self, count: int) -> None:
        self._nets: list[Any] = [Net() for _ in range(count)]

    def reset(self, which: Bools) -> None:
        for net, chosen in zip(self._nets, which):
            if chosen:
                net.reset()

    def step(self, actions: Ints) -> tuple[Ints, Bools]:
        """Take one action per net. Returns rewards, and True for nets that have finished or made scrap."""
        rewards, ended = zip(*(net.step(action) for net, action in zip(self._nets, actions.tolist())))
        return np.array(rewards), np.array(ended)

    def observations(self) -> Ints:
        return np.array([net.observation() for net in self._nets])

    def masks(self) -> Bools:
        return np.array([net.mask() for net in self._nets])
