"""Trains the controller: in each round it trains the hosts, then PPO updates it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, replace
from itertools import repeat
from typing import NamedTuple

import torch
from torch import Tensor

from rlprof import get_profiler, profile
from rlprof.workloads.devices import find_device, prepare_torch
from rlprof.workloads.morph.controller import Controller, Rollout, State, log_prob, update
from rlprof.workloads.morph.environment import HEADS, MEASURED, Environments
from rlprof.workloads.morph.feeding import Feed, feed
from rlprof.workloads.morph.images import chance_of, make_images, middle
from rlprof.workloads.morph.settings import MorphSettings
from rlprof.workloads.morph.telemetry import Telemetry
from rlprof.workloads.progress import Progress
from rlprof.workloads.workload import Parts

TRAINING, VALIDATION = range(2)


class Setup(NamedTuple):
    feed: Feed
    environments: Environments
    controller: Controller
    optimizer: torch.optim.Optimizer
    rollout: Rollout


def train(settings: MorphSettings, progress: Progress) -> None:
    """Train for as many rounds as `settings` has. `progress` gets the mean return of the episodes of each round."""
    profiler = get_profiler()
    with Telemetry(settings) as telemetry:
        made = set_up(settings)
        telemetry.write("run_began", settings=asdict(settings))
        progress.begin(settings.total_iterations)
        profiler.plan(iteration=settings.total_iterations, epoch=settings.total_iterations * settings.episode_length)
        with closing(made.feed):
            for number in range(1, settings.total_iterations + 1):
                with profiler.iteration():
                    collect(made, telemetry)
                    loss = update(made.controller, made.optimizer, made.rollout, settings.controller)
                    with profile("logging"):
                        score = made.rollout.rewards.sum(0).mean().item()
                        progress.advance(score, settings.steps_per_iteration)
                    telemetry.write("round_ended", round=number, mean_return=score, loss=loss)


def set_up(settings: MorphSettings) -> Setup:
    device = prepare_torch(settings)
    places = [find_device(name) for name in settings.devices] or [device]
    hosts = [places[host % len(places)] for host in range(settings.envs)]
    images = make_images(settings.images, settings.host.batches * settings.host.batch_size, settings.seed, TRAINING)
    validation = make_images(settings.images, settings.images.validation, settings.seed, VALIDATION)
    batches = feed(settings, images, hosts)
    controller = Controller(settings.controller.hidden).to(device)
    return Setup(
        batches,
        Environments(settings, hosts, batches, (middle(validation), validation.labels)),
        controller,
        torch.optim.Adam(controller.parameters(), settings.controller.learning_rate),
        Rollout.empty(settings.episode_length, settings.envs, device),
    )


def collect(made: Setup, telemetry: Telemetry) -> None:
    profiler = get_profiler()
    rollout, environments = made.rollout, made.environments
    with profile("rollout"):
        seen = environments.reset().to(rollout.observations.device)
        state: State | None = None
        for epoch in range(len(rollout.rewards)):
            profiler.epoch()
            heads, value, state = observe(made.controller, seen, state)
            action = choose(heads)
            following, reward = environments.step(action.cpu().numpy())
            with profile("buffer_add"):
                rollout.observations[epoch] = seen
                rollout.actions[epoch] = action
                rollout.log_probs[epoch] = log_prob(heads, action)
                rollout.values[epoch] = value
                rollout.rewards[epoch] = reward
                seen = following.to(seen.device)
            profiler.add_steps(len(reward))
            if telemetry.is_debug:
                write_epoch(telemetry, epoch, action, reward, environments)
        profiler.add_episodes(len(environments.hosts))


def observe(controller: Controller, seen: Tensor, state: State | None) -> tuple[list[Tensor], Tensor, State]:
    with profile("policy_forward"), torch.no_grad():
        heads, value, state = controller(seen[None], state)
        return [head[0] for head in heads], value[0], state


def choose(heads: list[Tensor]) -> Tensor:
    with profile("action_sampling"):
        return torch.cat([torch.multinomial(head.exp(), 1) for head in heads], -1)


def write_epoch(telemetry: Telemetry, epoch: int, action: Tensor, reward: Tensor, environments: Environments) -> None:
    for number, (host, measured) in enumerate(zip(environments.hosts, environments.measured.tolist())):
        telemetry.write(
            "epoch_ended",
            env=number,
            epoch=epoch + 1,
            action=action[number].tolist(),
            reward=reward[number].item(),
            grown=host.grown,
            **dict(zip(MEASURED, measured)),
        )


def parts(settings: MorphSettings) -> Parts:
    """Data loading, training of hosts, choice of actions and the update, each measured separately."""
    made = set_up(settings)
    collect(made, Telemetry(replace(settings, telemetry_level="off")))
    rollout, controller, environments = made.rollout, made.controller, made.environments
    environments.feed = repeat(next(made.feed))
    chance = chance_of(settings.seed)

    def load() -> int:
        for _ in range(settings.host.batches):
            next(made.feed)
        return settings.envs

    def train_hosts() -> int:
        environments.step(chance.integers(0, HEADS, (settings.envs, len(HEADS))))
        return settings.envs

    def make_hosts() -> int:
        environments.reset()
        return settings.steps_per_iteration

    def choose_actions() -> int:
        choose(observe(controller, rollout.observations[0], None)[0])
        return settings.envs

    def learn() -> int:
        update(controller, made.optimizer, rollout, settings.controller)
        return settings.steps_per_iteration

    return {
        "data loading": load,
        "host training": train_hosts,
        "new hosts": make_hosts,
        "choice of actions": choose_actions,
        "update": learn,
    }
