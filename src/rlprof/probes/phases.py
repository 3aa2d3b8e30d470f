"""Phases by rule, for trainings with an unknown loop: rollout, update, and the work between them.

The first environment step after an optimizer step starts the next iteration. A rollout begins with it, or with the
forward pass before it that chooses its action. An update begins with the first backward pass, or the first forward pass
that learns. What lies between the last thing in the rollout and the update is `advantage`, or `batch_preparation` where
the update learns from more than was just collected: from a replay buffer.

Steps that are no training have phases of their own, and are not counted:

- `evaluation`: in environments that the training does not collect from, see `environments`.
- `prefill`: before anything is learned, from a first step on that no forward pass chose the action of. It ends with the
  first forward pass that chooses actions. Where random steps follow even then (epsilon-greedy), it ends with the first
  update; the step before that is the first one that counts.

The size of its batch, the gradient mode, and what followed the last such pass decide whether a forward pass acts or
learns. So a new kind of pass may be misjudged once.

The rules share one state, so they are one class in one file, although a long one.
"""

from __future__ import annotations

import os
from typing import Any

from rlprof.ledger.catalogue import AFTER_TRAINING
from rlprof.ledger.profiler import Iteration, Profiler
from rlprof.probes.environments import Environments, Group
from rlprof.probes.loop import EVALUATION, NONE, PREFILL, ROLLOUT, UPDATE, new_loop
from rlprof.probes.patches import Patches
from rlprof.probes.startup import end_startup

ON_POLICY_STEPS = 8
"""With fewer steps than this, no advantages are computed."""

UNSEEN = (
    "the training learned, but no environment step was seen; rlprof sees those of classes that derive from "
    "gymnasium.Env or gymnasium.vector.VectorEnv, so count others with add_steps()"
)

NEVER = -2
"""No iteration's number."""


class Phases:
    """The rules, for one profiler. The state is in a `Loop`, which every call of an environment or a network passes; it
    calls these rules, on the driver's thread, only where something may change."""

    def __init__(self, profiler: Profiler) -> None:
        profile = profiler.profile
        self._profiler = profiler
        self._ledger = profiler.ledger
        names = {ROLLOUT: "rollout", UPDATE: "update", PREFILL: "prefill", EVALUATION: "evaluation"}
        self._spans = {phase: profile(name) for phase, name in names.items()}
        self._advantage = profile("advantage")
        self._preparation = profile("batch_preparation")
        self._after = profile(AFTER_TRAINING)
        forwards = (profile(name) for name in ("policy_forward", "loss_forward", "env_forward"))
        self.loop = new_loop(profiler, self, *forwards)
        self._environments = Environments(self.loop.forget_env)
        self.sees_environments = False
        """True once a probe attaches to environments."""
        self._children_before = _children()
        self._open = NONE
        """The phase whose span is open."""
        self._recorded = True
        """Not any more where the program has spans of its own in that place: it knows its phases."""
        self._held = False
        """In a forked child, until something is learned there: it may only step environments for its parent."""
        self._marked = -1
        """The last iteration that was begun here; NEVER where the program marks its own."""
        self._learned = False
        """Something was learned from steps."""
        self._evaluated = False
        """Something that is named an evaluation was one for certain."""
        self._expects_training = False
        """An environment that is new will be trained with: so was the last new one."""
        self._provisional = False
        """Something since the last update is named an evaluation, and may have been none."""
        self._prefilling = False
        self._prefilled = (0, 0)
        """Steps and episodes."""
        self._first_steps: int | None = None
        """Steps of the first stretch after a prefill, until the next one has shown how many lie between updates."""
        self._interrupted = 0
        """Steps of a rollout before an evaluation came."""
        self._unseen = 0
        """Steps since, as long as no forward pass was ever seen to choose an action."""

    # ---- called by the loop ----

    def turn_to(self, env: Any, resets: bool) -> None:
        """The driver calls another environment than before."""
        loop = self.loop
        self._credit()
        before = self._environments.stepped
        group, loop.asked = self._environments.turn_to(env, resets, loop.asked)
        if group.trains:
            evaluates = False
        elif self._learned:
            evaluates = not self._expects_training
        elif before is not None and group is before.group:
            evaluates = loop.phase == EVALUATION
        else:
            evaluates = loop.prefilled and group not in self._environments.stretch
            if before is not None and loop.last_ended >= loop.envs and loop.phase == ROLLOUT:
                self._take_for_evaluation(before.group)
        if evaluates:
            self._begin_evaluation()
        elif loop.phase == EVALUATION:
            self._end_evaluation()
        loop.counting = loop.phase not in (PREFILL, EVALUATION) and (group.trains or not self._learned)

    def before_rollout(self) -> None:
        """An environment is about to be stepped, or to be reset for the first time since something was learned."""
        loop = self.loop
        if not self._learned and not loop.asked and (loop.phase == NONE or loop.prefilled):
            self._begin_prefill()
            return
        self._begin_rollout()
        if loop.learned or self._marked == -1:
            self._mark()

    def after_episode(self) -> None:
        """A forward pass like those that have chosen actions follows the end of an evaluated episode: it is the
        training's, unless several environments are evaluated in turn."""
        current = self._environments.current
        if current is not None and current.group.size == 1:
            self._end_evaluation()
            self.loop.forget_env()  # the next environment decides what follows
            if self.loop.phase == UPDATE:
                self._begin_rollout()

    def is_acting(self, size: int, gradients: bool) -> bool:
        """Whether a forward pass chooses actions, and does not learn: of this leading dimension, in this gradient
        mode."""
        loop = self.loop
        if loop.phase in (NONE, PREFILL):
            acts = loop.phase == NONE or self._fits(size)
        elif loop.has_acted(size, gradients):
            acts = loop.phase == ROLLOUT or loop.learned
        elif loop.phase == UPDATE:
            acts = False
        else:
            acts = loop.steps == 0 or (self._fits(size) and not loop.has_acted(size, not gradients))
        if not acts:
            self.begin_update(size)
        elif loop.phase != ROLLOUT and not (loop.phase == PREFILL and loop.mixed):
            loop.forget_recent()  # what came before has not chosen an action
            self._begin_rollout()
            if self._marked == -1:
                self._mark()
        return bool(acts)

    def begin_update(self, size: int | None = None) -> None:
        """size: of the batch that is learned from, where a forward pass tells."""
        loop = self.loop
        phase = loop.phase
        if phase in (NONE, UPDATE):
            return
        loop.phase = UPDATE
        self._held = False
        recorded = self._may_record() and self._open == phase
        if recorded and phase == EVALUATION:
            self._close()
        elif recorded:
            fresh = phase == ROLLOUT and loop.steps >= ON_POLICY_STEPS and (size is None or size <= loop.steps)
            # A negative answer: recording was switched off and on, and the span is not there.
            self._ledger.split(self._spans[phase], self._advantage if fresh else self._preparation)
        if self._marked == -1:
            self._mark()
        if recorded:
            self._begin(UPDATE)

    def learns(self) -> None:
        """Something is learned, for the first time since an environment was stepped, here or in a process that works
        for this one."""
        self.loop.training = True
        if self._marked == -1 or (self.loop.learned and not self.loop.stepped):
            self._mark()
        unforeseen = self._end_stretch() and self._provisional
        self._provisional = False
        if unforeseen and self.loop.learned:
            self._mark()
        if self._environments.all_trained:
            self._environments.all_trained = self._evaluated = False
        elif not unforeseen:
            return
        if not self._evaluated and self._may_record():  # what was named an evaluation was none
            if self._open == EVALUATION:
                self._close()
                self._begin(UPDATE)
                self.loop.phase = UPDATE
            self._ledger.rename(self._spans[EVALUATION], self._spans[ROLLOUT])

    def epoch_ended(self) -> None:
        """As much was learned from as was collected."""
        self._profiler.announce("epoch")

    def size_of(self, argument: Any) -> Any:
        """The leading dimension of what has no shape itself; of a mapping or sequence, that of what comes first in
        it."""
        for _ in range(4):
            shape = getattr(argument, "shape", None)
            if shape is not None:
                return shape[0] if len(shape) else None
            if isinstance(argument, dict):
                argument = list(argument.values())
            argument = argument[0] if isinstance(argument, (tuple, list)) and argument else None
        return None

    def ended_in(self, result: Any) -> int:
        """How many episodes a step has ended, where it returned no arrays of truth values."""
        _, _, terminated, truncated, _ = result
        return sum(map(bool, (one or other for one, other in zip(terminated, truncated))))

    # ---- called by the program and by other probes ----

    def iteration(self) -> Iteration:
        """Replaces `Profiler.iteration`: the program marks its own iterations."""
        self._marked = NEVER
        return Profiler.iteration(self._profiler)

    def disable(self) -> None:
        """Replaces `Profiler.disable`."""
        self._settle()
        Profiler.disable(self._profiler)

    def off(self) -> None:
        """End the rules: a framework's probe knows the loop."""
        self._settle()
        self.loop.on = False
        self._close()

    def end(self) -> None:
        """The recording ends. What followed the last thing in the last phase is no part of that."""
        if self._open != NONE and self._may_record() and self._ledger.split(self._spans[self._open], self._after) >= 0:
            self._open = NONE
        self.off()

    def after_fork(self) -> None:
        """What was open is the parent's, and so are its optimizers until something is learned here: the child may step
        environments for it, and then all of its steps count."""
        self._open, self._marked, self._held = NONE, -1, True
        self.loop.phase = NONE
        self.loop.steps = 0
        self.loop.training = self.loop.stepping = self.loop.learned = False

    # ---- phases ----

    def _begin_rollout(self) -> None:
        loop = self.loop
        if not loop.on or not loop.training or loop.phase == ROLLOUT:
            return
        if loop.phase == PREFILL:
            self._end_prefill()
        loop.phase = ROLLOUT
        loop.steps, self._interrupted = self._interrupted, 0
        end_startup(self._profiler)
        self._record(ROLLOUT)

    def _mark(self) -> None:
        self.loop.learned = False
        if self._marked != NEVER:
            index = self._ledger.iteration(False)
            self._marked = index if self._marked in (-1, index - 1) else NEVER
            self._profiler.announce("iteration")

    def _unmark(self) -> None:
        """Discard the iteration that was begun."""
        if self._marked >= 0:
            self._ledger.drop_iteration()
            self._marked = -1

    def _begin_prefill(self) -> None:
        loop = self.loop
        self._credit()
        if loop.prefilled:
            loop.mixed |= loop.phase != NONE
            self._prefilled = self._take_back()
            self._unmark()
        loop.phase = PREFILL
        loop.prefilled = self._prefilling = True
        loop.counting = False
        end_startup(self._profiler)
        self._record(PREFILL)

    def _end_prefill(self) -> None:
        """With a forward pass that chooses actions, or an evaluation."""
        self._prefilling = False
        self._credit()
        self._prefilled = self._take_back()
        self.loop.counting = True

    def _take_back(self) -> tuple[int, int]:
        """Nothing of this stretch is counted. Returns how much it was, with what came before it."""
        steps, episodes = self._prefilled
        for group in self._environments.stretch:
            steps, episodes = steps + group.steps, episodes + group.episodes
            self.loop.recount(-group.counted[0], -group.counted[1])
            group.begin_stretch()
        return steps, episodes

    def _begin_evaluation(self) -> None:
        loop = self.loop
        if loop.phase == EVALUATION:
            return
        if loop.phase == PREFILL:
            self._end_prefill()
        elif loop.phase == ROLLOUT and not loop.learned:
            self._interrupted = loop.steps
        loop.phase = EVALUATION
        self._provisional = True
        end_startup(self._profiler)
        self._record(EVALUATION)

    def _end_evaluation(self) -> None:
        if self._may_record():
            self._close()
        self.loop.phase = UPDATE if self._learned else NONE

    def _take_for_evaluation(self, group: Group) -> None:
        """Nothing was learned yet, and after whole episodes another environment comes: they were an evaluation."""
        if any(other is not group and other.counted[0] for other in self._environments.stretch):
            return
        if self._may_record() and self._open == ROLLOUT:
            self._close()
            self._ledger.rename(self._spans[ROLLOUT], self._spans[EVALUATION])
        self.loop.recount(-group.counted[0], -group.counted[1])
        group.counted = (0, 0)
        self._unmark()
        self.loop.phase = NONE

    def _credit(self) -> None:
        steps, episodes = self.loop.take_block()
        self._environments.credit(steps, episodes, self.loop.counting)

    def _end_stretch(self) -> bool:
        """Something is learned from the last steps. Returns whether their environment was not known to train."""
        loop, environments = self.loop, self._environments
        self._credit()
        groups, stepped = environments.stretch, environments.stepped
        if not groups or stepped is None:
            return False
        last = stepped.group
        new = not last.trains
        if self._prefilling:
            self._prefilling = False
            steps, episodes = self._take_back()
            last.steps, last.episodes = loop.envs, loop.last_ended
            self._prefilled = steps - last.steps, episodes - last.episodes
        self._complete_first(last.steps)
        self._unseen += sum(group.steps for group in groups)
        loop.recount(*environments.end_stretch(not self._learned))
        others = not all(group.trains for group in groups)
        self._evaluated |= others
        if others or (new and self._learned):
            self._expects_training = not others
        if not loop.acted and self._learned and self._unseen >= self._prefilled[0]:
            loop.recount(*self._prefilled)  # the policy is none that is seen to act: nothing was prefill
            self._prefilled = (0, 0)
        self._learned = loop.counting = True
        loop.prefilled = loop.mixed = False
        return new

    def _complete_first(self, steps: int) -> None:
        """Epsilon-greedy steps after a prefill look like it. Once it is known how many steps lie between two updates,
        that many before the first one were training."""
        if not self._learned:
            self._first_steps = steps if self._prefilled[0] else None
        elif self._first_steps is not None:
            more = max(0, min(steps - self._first_steps, self._prefilled[0]))
            self.loop.recount(more, 0)
            self._prefilled = self._prefilled[0] - more, self._prefilled[1]
            self._first_steps = None

    def _settle(self) -> None:
        """Recording ends. An iteration that has not learned is none; steps that nothing was learned from all count."""
        loop = self.loop
        if not loop.on:
            return
        if self._marked >= 0 and not loop.learned:
            self._unmark()
        self._credit()
        if self.sees_environments and loop.learned and not loop.stepped and not self._steps_elsewhere():
            self._profiler.warn(UNSEEN, None)
        if not self._learned:
            loop.recount(*self._prefilled)
            self._prefilled = (0, 0)
            for group in self._environments.stretch:
                loop.recount(group.steps - group.counted[0], group.episodes - group.counted[1])
                group.counted = group.steps, group.episodes

    def _steps_elsewhere(self) -> bool:
        """Steps may have been made in other processes, or are counted by the program."""
        return bool(self._ledger.steps or self._ledger.members() or _children() > self._children_before)

    def _fits(self, size: int) -> bool:
        """Whether a batch may be of observations: of the environments that are stepped at once, or in turn."""
        stepped = self._environments.stepped
        return bool(size == self.loop.envs or (stepped is not None and size <= stepped.group.size))

    def _record(self, phase: int) -> None:
        if self._may_record():
            self._close()
            self._begin(phase)

    def _begin(self, phase: int) -> None:
        self._open = phase
        self._spans[phase].__enter__()

    def _may_record(self) -> bool:
        """Whether nothing is open but the phase. A phase that has something inside ends there, and is the last one."""
        if self._held:
            return False
        if not self._recorded or self._ledger.depth() == (self._open != NONE):
            return self._recorded
        self._recorded = self._open == NONE
        self._close()
        return False

    def _close(self) -> None:
        phase, self._open = self._open, NONE
        if phase != NONE:
            self._spans[phase].__exit__(None, None, None)


def _children() -> float:
    """CPU seconds of processes that this one has started and that have ended."""
    times = os.times()
    return times.children_user + times.children_system


_phases: dict[Profiler, Phases] = {}


def phases_of(patches: Patches) -> Phases:
    """The phases of a profiler, made for its first probe and kept until that is undone."""
    profiler = patches.profiler
    phases = _phases.get(profiler)
    if phases is None:
        phases = _phases[profiler] = Phases(profiler)
        patches.put(profiler, "iteration", phases.iteration)
        patches.put(profiler, "disable", phases.disable)
        patches.at_undo(lambda: _forget(profiler))
    return phases


def _after_fork_in_child() -> None:
    for phases in _phases.values():
        phases.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _forget(profiler: Profiler) -> None:
    phases = _phases.pop(profiler, None)
    if phases is not None:
        phases.off()


def end() -> None:
    """The recording ends."""
    for phases in _phases.values():
        if phases.loop.on:
            phases.end()


def off() -> None:
    """A framework's probe knows the loop: from here on the phases, the iterations and the counting are its own."""
    for phases in _phases.values():
        if phases.loop.on:
            phases.off()
