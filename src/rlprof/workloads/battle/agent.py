"""The agent that plays. Many threads call it, each for one decision of its battle."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlprof import profile
from rlprof.workloads.battle.network import BattleNetwork
from rlprof.workloads.battle.observation import ACTIONS, OBSERVATION, Mask, Observation
from rlprof.workloads.battle.settings import BattleSettings
from rlprof.workloads.devices import find_device


class Networks:
    def __init__(self, settings: BattleSettings) -> None:
        self.device = find_device(settings.device)
        self.policy = BattleNetwork(ACTIONS, 0.01, settings).to(self.device)
        self.value = BattleNetwork(1, 1.0, settings).to(self.device)

    def parameters(self) -> list[torch.nn.Parameter]:
        return [*self.policy.parameters(), *self.value.parameters()]


@dataclass(frozen=True)
class Choice:
    action: int
    log_prob: float
    value: float


def agent_of(networks: Networks, settings: BattleSettings) -> Agent:
    players = settings.envs * settings.players
    if settings.batched_inference:
        return BatchedAgent(networks, players, settings.envs)
    return SingleAgent(networks, players)


class Agent:
    """Chooses at random, which costs nothing. Subclasses use the networks.

    Players are numbered: first those that learn, then their opponents if the agent plays those, too.
    """

    def begin(self, player: int) -> None:
        """A battle of this player begins."""

    def choose(self, player: int, seen: Observation, mask: Mask, chance: random.Random) -> Choice:  # noqa: ARG002
        """Choose an action. Called on the thread of the battle."""
        return Choice(int(chance.choice(np.flatnonzero(mask))), 0.0, 0.0)

    def end(self, player: int) -> None:
        """The battle of this player has ended or was aborted."""


class SingleAgent(Agent):
    """Every thread calls the networks by itself, with one observation."""

    def __init__(self, networks: Networks, players: int) -> None:
        self._networks = networks
        self._policy_memory = [networks.policy.empty(1)] * players
        self._value_memory = [networks.value.empty(1)] * players

    def begin(self, player: int) -> None:
        self._policy_memory[player] = self._networks.policy.empty(1)
        self._value_memory[player] = self._networks.value.empty(1)

    def choose(self, player: int, seen: Observation, mask: Mask, chance: random.Random) -> Choice:
        with torch.inference_mode():
            observation = torch.from_numpy(seen).to(self._networks.device)[None, None]
            with profile("agent_action_selection"):
                logits, self._policy_memory[player] = self._networks.policy(observation, self._policy_memory[player])
                action, log_prob = sample(logits[0, 0], mask, chance)
            with profile("agent_value_calculation"):
                value, self._value_memory[player] = self._networks.value(observation, self._value_memory[player])
                return Choice(action, log_prob, value.item())


class BatchedAgent(Agent):
    """Answers all threads together. One thread computes for all, as soon as every running battle waits.

    Every player has its own row in a batch of constant size, so an answer does not depend on which others wait.
    """

    def __init__(self, networks: Networks, players: int, battles: int) -> None:
        self._networks = networks
        self._players = players
        self._battles = battles
        self._policy_memory = networks.policy.empty(players)
        self._value_memory = networks.value.empty(players)
        self._playing: set[int] = set()
        self._fresh: set[int] = set()
        """Players whose battle has begun, and who have made no decision in it yet."""
        self._waiting: dict[int, Observation] = {}
        self._answers: dict[int, tuple[Tensor, float]] = {}
        self._answering = False
        self._failure: BaseException | None = None
        self._changed = threading.Condition()

    def begin(self, player: int) -> None:
        with self._changed:
            self._fresh.add(player)
            if player < self._battles:
                self._playing.add(player)

    def choose(self, player: int, seen: Observation, mask: Mask, chance: random.Random) -> Choice:
        logits, value = self._answer(player, seen)
        with profile("agent_action_selection"):
            action, log_prob = sample(logits, mask, chance)
        return Choice(action, log_prob, value)

    def end(self, player: int) -> None:
        with self._changed:
            self._playing.discard(player)
            self._changed.notify_all()

    def _answer(self, player: int, seen: Observation) -> tuple[Tensor, float]:
        with self._changed:
            self._waiting[player] = seen
            self._changed.notify_all()
            while player not in self._answers and (self._answering or len(self._waiting) < len(self._playing)):
                with profile("inference_wait", wait=True):
                    self._changed.wait()
                if self._failure is not None:
                    raise RuntimeError("the networks have failed on another thread") from self._failure
            if player in self._answers:
                return self._answers.pop(player)
            waiting, self._waiting = self._waiting, {}
            fresh, self._fresh = self._fresh & waiting.keys(), self._fresh - waiting.keys()
            self._answering = True
        try:
            answers = self.forward(waiting, fresh)
        except BaseException as failure:
            with self._changed:
                self._failure = failure
                self._changed.notify_all()
            raise
        with self._changed:
            self._answering = False
            self._answers.update(answers)
            self._changed.notify_all()
            return self._answers.pop(player)

    @torch.inference_mode()
    def forward(self, waiting: Mapping[int, Observation], fresh: set[int]) -> dict[int, tuple[Tensor, float]]:
        """Logits and values. Only one thread at a time may call this."""
        networks, players = self._networks, self._players
        observations = torch.zeros(players, OBSERVATION)
        for player, seen in waiting.items():
            observations[player] = torch.from_numpy(seen)
        observations = observations.to(networks.device)[None]
        rows = torch.tensor([player in waiting for player in range(players)], device=networks.device)
        begun = torch.tensor([player in fresh for player in range(players)], device=networks.device)
        with profile("agent_action_selection"):
            before = networks.policy.empty(players).where(begun, self._policy_memory)
            logits, after = networks.policy(observations, before)
            self._policy_memory = after.where(rows, before)
        with profile("agent_value_calculation"):
            before = networks.value.empty(players).where(begun, self._value_memory)
            values, after = networks.value(observations, before)
            self._value_memory = after.where(rows, before)
            numbers = values[0, :, 0].tolist()
        return {player: (logits[0, player], numbers[player]) for player in waiting}


def sample(logits: Tensor, mask: Mask, chance: random.Random) -> tuple[int, float]:
    """Sample one of the allowed actions. Returns it with the logarithm of its probability."""
    log_probs = torch.where(torch.from_numpy(mask), logits.cpu(), -torch.inf).log_softmax(-1).numpy()
    cumulated: NDArray[np.float64] = np.cumsum(np.exp(log_probs, dtype=np.float64))
    action = int(np.searchsorted(cumulated, chance.random() * cumulated[-1], side="right"))
    return action, float(log_probs[action])
