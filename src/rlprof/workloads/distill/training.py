"""The training: iterations of collecting and learning, first with the teacher, then without it."""

from __future__ import annotations

from dataclasses import asdict
from itertools import cycle

import click
import numpy as np
import torch

from rlprof import TorchCapture, get_profiler, profile, profile_function
from rlprof.workloads.devices import prepare_torch
from rlprof.workloads.distill import ROLLOUT
from rlprof.workloads.distill.learning import Learner
from rlprof.workloads.distill.policy import Student, precision
from rlprof.workloads.distill.rollout import Collector
from rlprof.workloads.distill.settings import DistillSettings
from rlprof.workloads.distill.timing import RolloutTiming
from rlprof.workloads.distill.tokens import ACTIONS
from rlprof.workloads.distill.world import Worlds
from rlprof.workloads.progress import Progress
from rlprof.workloads.workload import Parts, part


class Training:
    def __init__(self, settings: DistillSettings) -> None:
        settings.check()
        self.settings = settings
        self.device = prepare_torch(settings)
        self.student = Student(settings.policy).to(self.device)
        self.collector = Collector(settings, self.student, self.device)
        self.learner = Learner(settings, self.student, self.device)

    @profile_function("evaluation")
    @torch.no_grad()
    def evaluate(self) -> float:
        """Mean return of an agent over a rollout without random actions, always in the same, separate worlds. Uses none
        of the training's random numbers."""
        settings = self.settings
        worlds = Worlds(settings.base_missions, settings.envs, settings.agents, (settings.seed, 1))
        state = self.student.first_state(settings.pupils)
        total = 0.0
        for _ in range(settings.bptt):
            observations = torch.from_numpy(worlds.observe()).flatten(0, 1).to(self.device)
            with profile("policy_predict"), precision(settings, self.device):
                log_probs, _, state = self.student(observations[None], state)
                actions = log_probs[0].argmax(-1).cpu().numpy()
            total += float(worlds.step(actions.reshape(settings.envs, settings.agents)).sum())
        return total / settings.pupils


def train(settings: DistillSettings, progress: Progress) -> None:
    training = Training(settings)
    timing = RolloutTiming(ROLLOUT, settings.timing_every)
    profiler = get_profiler()
    progress.begin(settings.total_iterations)
    with _capture(settings):
        for iteration in range(1, settings.total_iterations + 1):
            with profiler.iteration():
                supervised = iteration <= settings.supervised_iterations
                rollout = training.collector.collect(supervised)
                timing.rollout_ended(iteration * settings.steps_per_iteration, settings.bptt)
                training.learner.learn(rollout, supervised)
                if settings.evaluator.evaluate_local and iteration % settings.evaluator.epoch_interval == 0:
                    score = training.evaluate()
                    with profile("logging"):
                        _say(f"evaluation after {iteration} iterations: mean return {score:.4g}")
                with profile("logging"):
                    score = rollout.steps.rewards.sum(dim=0).mean().item()
                    progress.advance(score, settings.steps_per_iteration)


def parts(settings: DistillSettings) -> Parts:
    """The operations, each measured separately.

    An operation of one of the two phases counts for the share of steps that its phase has.
    """
    training = Training(settings)
    collector, learner = training.collector, training.learner
    rollout = collector.collect(supervised=True)
    seen = cycle(rollout.steps.observations.clone())
    chance = np.random.default_rng(settings.seed)

    def env_step() -> None:
        collector.worlds.step(chance.integers(0, ACTIONS, collector.worlds.load.shape))
        collector.worlds.observe()

    step, total = settings.pupils, settings.total_iterations
    whole = settings.steps_per_iteration * total
    taught = settings.supervised_iterations
    evaluations = total // settings.evaluator.epoch_interval if settings.evaluator.evaluate_local else 0
    found = {"env_step": part(env_step, step), "policy_forward": part(lambda: collector.act(next(seen)), step)}
    if taught:
        found["teacher_total"] = part(lambda: collector.teaching.actions(next(seen)), step * total / taught)
        found["update, imitating"] = part(lambda: learner.learn(rollout, supervised=True), whole / taught)
    if taught < total:
        found["update, PPO"] = part(lambda: learner.learn(rollout, supervised=False), whole / (total - taught))
    if evaluations:
        found["evaluation"] = part(training.evaluate, whole / evaluations)
    return found


def _capture(settings: DistillSettings) -> TorchCapture:
    wanted = settings.trainer.profiler
    recorded = get_profiler().enabled
    if wanted.enabled and not recorded:
        _say("trainer.profiler writes no trace, because nothing is recorded")
    capture = TorchCapture(**{**asdict(wanted), "enabled": wanted.enabled and recorded}, step="iteration")
    capture.log = _say_in_settings
    capture.plan(settings.total_iterations)
    return capture


def _say_in_settings(text: str) -> None:
    """Report a capture's message with the names of the settings instead of the flags."""
    for kind in ("wait", "warmup", "active"):
        text = text.replace(f"--torch-profiler-{kind} ", f"trainer.profiler.{kind}_steps=")
    _say(text)


def _say(text: str) -> None:
    click.echo(f"distill: {text}", err=True)
