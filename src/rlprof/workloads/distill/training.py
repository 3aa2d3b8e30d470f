"""The training: iterations of collecting and learning, first with the teacher, then without it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import click
import numpy as np

from rlprof import TorchCapture, get_profiler, profile
from rlprof.workloads.devices import prepare_torch
from rlprof.workloads.distill import ROLLOUT
from rlprof.workloads.distill.evaluation import evaluate
from rlprof.workloads.distill.learning import Learner
from rlprof.workloads.distill.policy import Student
from rlprof.workloads.distill.rollout import Collector
from rlprof.workloads.distill.settings import DistillSettings
from rlprof.workloads.distill.timing import RolloutTiming
from rlprof.workloads.distill.tokens import ACTIONS
from rlprof.workloads.progress import Progress
from rlprof.workloads.workload import Parts


class Training:
    def __init__(self, settings: DistillSettings) -> None:
        settings.check()
        self.settings = settings
        self.device = prepare_torch(settings)
        self.student = Student(settings.policy).to(self.device)
        self.collector = Collector(settings, self.student, self.device)
        self.learner = Learner(settings, self.student, self.device)

    def evaluate(self) -> float:
        return evaluate(self.settings, self.student, self.device)


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
                    progress.advance(rollout.mean_return, settings.steps_per_iteration)


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

    def part(do: Callable[[], object], steps: int, iterations: int) -> Callable[[], int]:
        def measured() -> int:
            do()
            return round(steps * settings.total_iterations / iterations)

        return measured

    step, whole = settings.pupils, settings.steps_per_iteration
    taught, evaluated = settings.supervised_iterations, _evaluations(settings)
    found = {
        "env_step": part(env_step, step, settings.total_iterations),
        "policy_forward": part(lambda: collector.act(next(seen)), step, settings.total_iterations),
    }
    if taught:
        found["teacher_total"] = part(lambda: collector.teaching.actions(next(seen)), step, taught)
        found["update, imitating"] = part(lambda: learner.learn(rollout, supervised=True), whole, taught)
    if taught < settings.total_iterations:
        found["update, PPO"] = part(
            lambda: learner.learn(rollout, supervised=False), whole, settings.total_iterations - taught
        )
    if evaluated:
        found["evaluation"] = part(training.evaluate, whole, evaluated)
    return found


def _evaluations(settings: DistillSettings) -> int:
    return settings.total_iterations // settings.evaluator.epoch_interval if settings.evaluator.evaluate_local else 0


def _capture(settings: DistillSettings) -> TorchCapture:
    wanted = settings.trainer.profiler
    recorded = get_profiler().enabled
    if wanted.enabled and not recorded:
        _say("trainer.profiler writes no trace, because nothing is recorded")
    capture = TorchCapture(
        enabled=wanted.enabled and recorded,
        wait_steps=wanted.wait_steps,
        warmup_steps=wanted.warmup_steps,
        active_steps=wanted.active_steps,
        record_shapes=wanted.record_shapes,
        step="iteration",
    )
    capture.log = _say_in_settings
    capture.plan(settings.total_iterations)
    return capture


def _say_in_settings(text: str) -> None:
    """Report a capture's message with the names of the settings instead of the flags."""
    for part in ("wait", "warmup", "active"):
        text = text.replace(f"--torch-profiler-{part} ", f"trainer.profiler.{part}_steps=")
    _say(text)


def _say(text: str) -> None:
    click.echo(f"distill: {text}", err=True)
