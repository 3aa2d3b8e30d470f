"""PPO over whole battles: play one in every environment, learn from them, repeat."""

from __future__ import annotations

import atexit
import random
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlprof import get_profiler, profile, profile_function
from rlprof.workloads.battle.agent import Agent, BatchedAgent, Networks, agent_of
from rlprof.workloads.battle.environment import Played, arena
from rlprof.workloads.battle.server import serving
from rlprof.workloads.battle.settings import BattleSettings
from rlprof.workloads.devices import prepare_torch
from rlprof.workloads.progress import Progress
from rlprof.workloads.workload import Parts, part


class BattleBatch(NamedTuple):
    """Battles side by side: decisions of the longest battle x battles. Shorter battles are padded."""

    observations: Tensor
    masks: Tensor
    actions: Tensor
    log_probs: Tensor
    returns: Tensor
    advantages: Tensor
    real: Tensor
    """True except for padding."""

    def pick(self, battles: Tensor) -> BattleBatch:
        return BattleBatch(*(column[:, battles] for column in self))


@profile_function("advantage")
def advantages_of(played: Played, settings: BattleSettings) -> list[float]:
    """Generalised advantage estimation, backwards from the last decision, which nothing follows."""
    values = [choice.value for choice in played.choices] + [0.0]
    advantages, advantage = [], 0.0
    for step in reversed(range(len(played.rewards))):
        delta = played.rewards[step] + settings.gamma * values[step + 1] - values[step]
        advantage = delta + settings.gamma * settings.gae_lambda * advantage
        advantages.append(advantage)
    return advantages[::-1]


@profile_function("batch_preparation")
def batch_of(battles: list[Played], settings: BattleSettings) -> BattleBatch:
    advantages = [advantages_of(played, settings) for played in battles]
    flat = np.concatenate(advantages)
    mean, spread = float(flat.mean()), float(flat.std()) + 1e-8

    def side_by_side(columns: list[Tensor]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence(columns).to(settings.device)

    def each(of: str) -> Tensor:
        return side_by_side([torch.tensor([getattr(choice, of) for choice in played.choices]) for played in battles])

    masks = [torch.from_numpy(np.stack(played.masks)) for played in battles]
    gained = side_by_side([torch.tensor(column) for column in advantages])
    real = side_by_side([torch.ones(len(played.rewards), dtype=torch.bool) for played in battles])
    return BattleBatch(
        side_by_side([torch.from_numpy(np.stack(played.observations)) for played in battles]),
        side_by_side(masks) | ~real[..., None],  # padding needs a valid distribution, too
        each("action"),
        each("log_prob"),
        gained + each("value"),
        (gained - mean) / spread,
        real,
    )


@profile_function("loss_calculation")
def loss_of(networks: Networks, batch: BattleBatch, settings: BattleSettings) -> Tensor:
    battles = batch.actions.shape[1]
    logits, _ = networks.policy(batch.observations, networks.policy.empty(battles))
    values, _ = networks.value(batch.observations, networks.value.empty(battles))
    log_probs = logits.masked_fill(~batch.masks, -1e9).log_softmax(-1)
    ratio = (log_probs.gather(-1, batch.actions[..., None]).squeeze(-1) - batch.log_probs).exp()
    clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
    policy_loss = -torch.min(ratio * batch.advantages, clipped * batch.advantages)
    value_loss = (values.squeeze(-1) - batch.returns).square()
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    loss: Tensor = policy_loss + 0.5 * value_loss - settings.entropy * entropy
    return loss[batch.real].mean()


@profile_function("update")
def update(
    networks: Networks, optimizer: torch.optim.Optimizer, battles: list[Played], settings: BattleSettings
) -> None:
    batch = batch_of(battles, settings)
    for _ in range(settings.epochs):
        for some in torch.randperm(len(battles)).split(settings.batch_size):  # type: ignore[no-untyped-call]  # torch's
            with profile("batch_preparation"):
                picked = batch.pick(some)
            loss = loss_of(networks, picked, settings)
            with profile("zero_grad"):
                optimizer.zero_grad()
            with profile("gradient_calculation"):
                loss.backward()  # type: ignore[no-untyped-call]  # torch's own has no types
            torch.nn.utils.clip_grad_norm_(networks.parameters(), settings.max_gradient)
            optimizer.step()


def train(settings: BattleSettings, progress: Progress) -> None:
    networks, optimizer = _made(settings)
    profiler = get_profiler()
    with serving(settings) as address, arena(settings, address, agent_of(networks, settings)) as played_in:
        progress.begin(settings.total_iterations)
        while not _is_done(settings, progress):
            with profiler.iteration():
                battles = played_in.play()
                steps = sum(len(played.rewards) for played in battles)
                profiler.add_steps(steps)
                profiler.add_episodes(len(battles))
                update(networks, optimizer, battles, settings)
                with profile("logging"):
                    progress.advance(sum(sum(played.rewards) for played in battles) / len(battles), steps)


def parts(settings: BattleSettings) -> Parts:
    """Battles of an agent that costs nothing, the agent, and the update, each measured separately."""
    networks, optimizer = _made(settings)
    kept = ExitStack()
    atexit.register(kept.close)  # the parts are called until the program ends
    address = kept.enter_context(serving(settings))
    cheaply = kept.enter_context(arena(settings, address, Agent()))
    agent = agent_of(networks, settings)
    battles = kept.enter_context(arena(settings, address, agent)).play()
    steps = sum(len(played.rewards) for played in battles)
    first = {
        player: battles[player % settings.envs].observations[0] for player in range(settings.envs * settings.players)
    }
    chance = random.Random(settings.seed)

    def play() -> int:
        return sum(len(played.rewards) for played in cheaply.play())

    def choose() -> None:
        if isinstance(agent, BatchedAgent):
            for _ in range(settings.players):
                agent.forward({player: first[player] for player in range(settings.envs)}, set())
            return
        for player, seen in first.items():
            agent.choose(player, seen, battles[player % settings.envs].masks[0], chance)

    learn = part(lambda: update(networks, optimizer, battles, settings), steps)
    return {"battles": play, "agent": part(choose, settings.envs), "update": learn}


def _is_done(settings: BattleSettings, progress: Progress) -> bool:
    if settings.timesteps is not None:
        return progress.steps >= settings.timesteps
    return len(progress.scores) >= settings.iterations


def _made(settings: BattleSettings) -> tuple[Networks, torch.optim.Optimizer]:
    prepare_torch(settings)
    random.seed(settings.seed)
    np.random.seed(settings.seed % 2**32)
    networks = Networks(settings)
    return networks, torch.optim.Adam(networks.parameters(), lr=settings.learning_rate, eps=1e-5)
