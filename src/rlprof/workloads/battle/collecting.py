"""Battles in all environments at the same time, one thread each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from poke_env.battle import Battle

from rlprof import profile
from rlprof.workloads.battle.agent import Agent, Choice
from rlprof.workloads.battle.environment import BattleEnv, Decision, Opponent, at_random, decide, max_damage
from rlprof.workloads.battle.observation import Mask, Observation
from rlprof.workloads.battle.settings import BattleSettings


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
