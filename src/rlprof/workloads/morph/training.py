"""Trains the controller: in each round it trains the hosts, then PPO updates it."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, replace
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import torch
from torch import Tensor

from rlprof import get_profiler, profile
from rlprof.errors import RlprofError
from rlprof.workloads.devices import find_device, prepare_torch
from rlprof.workloads.morph.controller import Controller, Rollout, State, log_prob, update
from rlprof.workloads.morph.environment import HEADS, MEASURED, Environments
from rlprof.workloads.morph.images import Feed, chance_of, feed, make_images, middle
from rlprof.workloads.morph.settings import MorphSettings
from rlprof.workloads.progress import Progress
from rlprof.workloads.workload import Parts, part

TRAINING, VALIDATION = range(2)


class Telemetry:
    """Writes events if there is a folder and the level is not off. Runs that share a folder append to one file."""

    def __init__(self, settings: MorphSettings) -> None:
        self._file: TextIO | None = None
        self.is_debug = settings.telemetry_level == "debug"
        if settings.telemetry_dir is None:
            if self.is_debug:
                raise RlprofError("telemetry_level=debug writes nothing without --telemetry-dir; give a folder")
        elif settings.telemetry_level != "off":
            folder = Path(settings.telemetry_dir)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._file = (folder / "events.jsonl").open("a", encoding="utf-8")
            except OSError as error:
                raise RlprofError(f"telemetry cannot be written to {folder}: {error.strerror}") from error

    def write(self, event: str, **facts: Any) -> None:
        if self._file is not None:
            with profile("telemetry"):
                self._file.write(json.dumps({"event": event, **facts}) + "\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Setup(NamedTuple):
    feed: Feed
    environments: Environments
    controller: Controller
    optimizer: torch.optim.Optimizer
    rollout: Rollout


def train(settings: MorphSettings, progress: Progress) -> None:
    """Train for as many rounds as `settings` has. `progress` gets the mean return of the episodes of each round."""
    profiler = get_profiler()
    with closing(Telemetry(settings)) as telemetry:
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
    made = set_up(settings)
    collect(made, Telemetry(replace(settings, telemetry_level="off")))
    rollout, controller, environments = made.rollout, made.controller, made.environments
    environments.feed = repeat(next(made.feed))
    chance = chance_of(settings.seed)

    def load() -> None:
        for _ in range(settings.host.batches):
            next(made.feed)

    def train_hosts() -> None:
        environments.step(chance.integers(0, HEADS, (settings.envs, len(HEADS))))

    def choose_actions() -> None:
        choose(observe(controller, rollout.observations[0], None)[0])

    def learn() -> None:
        update(controller, made.optimizer, rollout, settings.controller)

    return {
        "data loading": part(load, settings.envs),
        "host training": part(train_hosts, settings.envs),
        "new hosts": part(environments.reset, settings.steps_per_iteration),
        "choice of actions": part(choose_actions, settings.envs),
        "update": part(learn, settings.steps_per_iteration),
    }
