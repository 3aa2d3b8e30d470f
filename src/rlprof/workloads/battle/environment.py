"""Battles as environments, one thread each. One side learns, and the other one is part of the environment."""

from __future__ import annotations

import hashlib
import random
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from poke_env.battle import Battle

from rlprof import profile, profile_function
from rlprof.workloads.battle.agent import Agent, Choice
from rlprof.workloads.battle.observation import Mask, Observation, choices, damage, observe, worth
from rlprof.workloads.battle.seat import Seat
from rlprof.workloads.battle.settings import BattleSettings


@dataclass(frozen=True)
class Decision:
    battle: Battle
    orders: list[str]
    observation: Observation

    @property
    def mask(self) -> Mask:
        return np.array([bool(order) for order in self.orders])


def decide(battle: Battle) -> Decision:
    with profile("observation_encoding"):
        orders = choices(battle)
        return Decision(battle, orders, observe(battle, orders))


Opponent = Callable[[Battle], str]
"""Chooses an order for a decision."""


class BattleEnv:
    """Used by one thread. All its random numbers, and the server's, come from the seed and its number."""

    def __init__(self, number: int, settings: BattleSettings, address: str) -> None:
        token = hashlib.sha256(f"{settings.seed} {number}".encode()).hexdigest()[:12] + secrets.token_hex(2)
        self.number = number
        self._max_turns = settings.max_turns
        self._own = Seat(f"b{token}1", address, settings.battle_format)
        self._other = Seat(f"b{token}2", address, settings.battle_format)
        self._opponent: Opponent = max_damage
        self._decision: Decision | None = None
        self._worth = 0.0
        self._turns = 0

    def log_in(self) -> None:
        self._own.log_in()
        self._other.log_in()

    @profile_function("env_reset")
    def reset(self, opponent: Opponent) -> Decision:
        self._opponent = opponent
        self._turns = 0
        self._own.challenge(self._other)
        self._decision = self._advance()
        assert self._decision is not None, "a battle begins with a decision"
        self._worth = worth(self._decision.battle)
        return self._decision

    @profile_function("env_step")
    def step(self, action: int) -> tuple[Decision | None, float]:
        """Returns the next decision (None if the battle has ended) and the reward."""
        assert self._decision is not None
        battle = self._decision.battle
        self._turns += 1
        too_long = self._turns >= self._max_turns
        self._own.send("/forfeit" if too_long else f"/choose {self._decision.orders[action]}")
        self._decision = self._advance()
        before, self._worth = self._worth, worth(battle)
        return self._decision, self._worth - before

    def close(self) -> None:
        self._own.close()
        self._other.close()

    def _advance(self) -> Decision | None:
        """Go on until the learning side has to decide. The other side has decided by then."""
        while True:
            own_decides, other_decides = self._own.read(), self._other.read()
            battle, other_battle = self._own.battle, self._other.battle
            assert battle is not None and other_battle is not None  # noqa: PT018 - a battle has begun
            if battle.finished:
                self._own.send("/leave")
                self._other.send("/leave")
                return None
            if other_decides:
                self._other.send(f"/choose {self._opponent(other_battle)}")
            if own_decides:
                return decide(battle)


def at_random(chance: random.Random) -> Opponent:
    return lambda battle: chance.choice([order for order in choices(battle) if order])


def max_damage(battle: Battle) -> str:
    """The move with the most damage, or the first allowed order if there is no move."""
    orders = choices(battle)
    own, other = battle.active_pokemon, battle.opponent_active_pokemon
    hurts = {}
    if own is not None and other is not None:
        hurts = {order: damage(move, own, other) for order, move in zip(orders, own.moves.values()) if order}
    return max(hurts, key=lambda order: hurts[order], default=next(filter(None, orders)))


@dataclass
class Played:
    """A battle from the view of the side that learns."""

    observations: list[Observation] = field(default_factory=list)
    masks: list[Mask] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class Arena:
    """The environments, their threads, and the agent that plays in them. Thread timing changes no result: each
    environment has its own random numbers, and battles are returned in the order of the environments."""

    def __init__(self, settings: BattleSettings, address: str, agent: Agent, pool: ThreadPoolExecutor) -> None:
        self._agent = agent
        self._pool = pool
        self._settings = settings
        self.envs = [BattleEnv(number, settings, address) for number in range(settings.envs)]
        self._chances = [random.Random(f"{settings.seed} {number}") for number in range(2 * settings.envs)]

    def play(self) -> list[Played]:
        with profile("rollout"), profile("env_parallel_execution", wait=True):
            return list(self._pool.map(self._play, self.envs))

    def _play(self, env: BattleEnv) -> Played:
        players = [env.number + side * self._settings.envs for side in range(self._settings.players)]
        for player in players:
            self._agent.begin(player)
        try:
            return self._play_on(env)
        finally:
            for player in players:
                self._agent.end(player)

    def _play_on(self, env: BattleEnv) -> Played:
        played = Played()
        decision: Decision | None = env.reset(self._opponent(env.number))
        while decision is not None:
            mask = decision.mask
            choice = self._agent.choose(env.number, decision.observation, mask, self._chances[env.number])
            played.observations.append(decision.observation)
            played.masks.append(mask)
            played.choices.append(choice)
            decision, reward = env.step(choice.action)
            played.rewards.append(reward)
        return played

    def _opponent(self, number: int) -> Opponent:
        player = self._settings.envs + number
        if self._settings.opponent == "self":
            return partial(self._answer, player)
        return at_random(self._chances[player]) if self._settings.opponent == "random" else max_damage

    def _answer(self, player: int, battle: Battle) -> str:
        decision = decide(battle)
        choice = self._agent.choose(player, decision.observation, decision.mask, self._chances[player])
        return decision.orders[choice.action]


@contextmanager
def arena(settings: BattleSettings, address: str, agent: Agent) -> Iterator[Arena]:
    """An arena whose players have logged in. At the end they log out before their threads are joined."""
    with ThreadPoolExecutor(settings.envs, "battle") as pool:
        made = Arena(settings, address, agent, pool)
        try:
            for env in made.envs:
                env.log_in()
            yield made
        finally:
            for env in made.envs:  # threads that wait for the server stop waiting
                env.close()
