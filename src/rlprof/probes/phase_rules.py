"""Finds the phases of trainings with an unknown loop by rule: rollout, update, and the work between them.

The first environment step after an optimizer step starts the next iteration. A rollout begins with it, or with the
forward pass before it that chooses its action. An update begins with the first backward pass, or the first forward pass
that learns. The time between the last call in the rollout and the update is `advantage`. It is `batch_preparation` if
the update learns from more than was just collected, as from a replay buffer.

Some steps are not training. They have phases of their own, and are not counted:

- `evaluation`: steps in environments that the training does not collect from, see `environments`.
- `prefill`: steps before anything is learned, if no forward pass chose the action of the first one. It ends with the
  first forward pass that chooses actions. If random steps follow even then (epsilon-greedy), it ends with the first
  update, and the step before that update is the first one that counts.

Whether a forward pass acts or learns depends on the size of its batch, the gradient mode, and what followed the last
such pass. So a new kind of pass may be misjudged once.
"""

from __future__ import annotations

import os
from typing import Any

from rlprof.ledger.profiler import Iteration, Profiler
from rlprof.probes.arguments import episodes_ended, leading_dimension
from rlprof.probes.environments import Environments, Group
from rlprof.probes.loop import EVALUATION, NONE, PREFILL, ROLLOUT, UPDATE, new_loop
from rlprof.probes.phase_spans import PhaseSpans
from rlprof.probes.received import Received
from rlprof.probes.seen import seen_of

ON_POLICY_STEPS = 8
"""A training that collects fewer steps between updates computes no advantages."""

UNSEEN = (
    "the training learned, but no environment step was seen. rlprof sees the steps of classes that derive from "
    "gymnasium.Env or gymnasium.vector.VectorEnv. Count other steps with add_steps()"
)

NEVER = -2
"""Not the number of any iteration."""


class PhaseRules:
    """The rules, for one profiler. Every call of an environment or a network passes a `Loop`, which has the state. It
    calls these rules on the driver's thread, only where something may change."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self._ledger = profiler.ledger
        self._spans = PhaseSpans(profiler)
        forwards = (profiler.profile(name) for name in ("policy_forward", "loss_forward", "env_forward"))
        self.loop = new_loop(profiler, self, *forwards)
        self._environments = Environments(self.loop.forget_env)
        self._received = Received(profiler)
        self.sees_environments = False
        """True once a probe attaches to environments."""
        self._children_before = _children()
        self._marked = -1
        """The last iteration that was begun here; NEVER if the program marks its own."""
        self._learned = False
        """True once the training has learned from steps."""
        self._evaluated = False
        """True if at least one phase that was recorded as an evaluation certainly was one."""
        self._expects_training = False
        """A new environment will be trained with, as the last new one was."""
        self._provisional = False
        """A phase since the last update was recorded as an evaluation, but may be training."""
        self._prefilling = False
        self._prefilled = (0, 0)
        """Steps and episodes of the prefill."""
        self._first_steps: int | None = None
        """Steps of the first stretch after a prefill, until the next one shows how many steps lie between updates."""
        self._interrupted = 0
        """Steps of a rollout that an evaluation has interrupted."""
        self._unseen = 0
        """Steps of a training in which no forward pass was seen to choose an action."""

    # ---- called by the loop ----

    def switch_to(self, env: Any, resets: bool) -> None:
        """The driver calls another environment than last time."""
        loop = self.loop
        self._credit()
        before = self._environments.stepped
        group, loop.action_chosen = self._environments.switch_to(env, resets, loop.action_chosen)
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
        if not self._learned and not loop.action_chosen and (loop.phase == NONE or loop.prefilled):
            self._begin_prefill()
            return
        self._begin_rollout()
        if loop.learned or self._marked == -1:
            self._mark()

    def after_episode(self) -> None:
        """An evaluated episode has ended, and a forward pass follows that looks as if it chose actions. It belongs to
        the training, unless several environments are evaluated alternately."""
        current = self._environments.current
        if current is not None and current.group.size == 1:
            self._end_evaluation()
            self.loop.forget_env()  # the next environment decides what follows
            if self.loop.phase == UPDATE:
                self._begin_rollout()

    def is_acting(self, size: int, gradients: bool) -> bool:
        """True if a forward pass of this leading dimension, in this gradient mode, chooses actions. False if it
        learns."""
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
            loop.forget_recent()  # the passes before it have not chosen an action
            self._begin_rollout()
            if self._marked == -1:
                self._mark()
        return bool(acts)

    def begin_update(self, size: int | None = None) -> None:
        """size: of the batch, if a forward pass has shown it."""
        loop = self.loop
        phase = loop.phase
        if phase in (NONE, UPDATE):
            return
        loop.phase = UPDATE
        self._spans.held = False
        recorded = self._spans.allowed() and self._spans.open == phase
        if recorded and phase == EVALUATION:
            self._spans.close()
        elif recorded:
            fresh = phase == ROLLOUT and loop.steps >= ON_POLICY_STEPS and (size is None or size <= loop.steps)
            self._spans.end_at_last_call(computes_advantages=fresh)
        if self._marked == -1:
            self._mark()
        if recorded:
            self._spans.begin(UPDATE)

    def learns(self) -> None:
        """The training learns for the first time since an environment was stepped, here or in a worker process."""
        self.loop.training = True
        self._note_environments()
        received = self.loop.stepped or self._received.anything()
        if self._marked == -1 or (self.loop.learned and not self.loop.stepped and received):
            self._mark()
        unforeseen = self._end_stretch() and self._provisional
        self._provisional = False
        if unforeseen and self.loop.learned:
            self._mark()
        if self._environments.all_trained:
            self._environments.all_trained = self._evaluated = False
        elif not unforeseen:
            return
        if not self._evaluated and self._spans.allowed():  # what was recorded as an evaluation was training
            if self._spans.open == EVALUATION:
                self._spans.begin(UPDATE)
                self.loop.phase = UPDATE
            self._spans.rename(EVALUATION, ROLLOUT)

    def _note_environments(self) -> None:
        current, seen = self._environments.current, seen_of(self._profiler)
        if current is not None and seen is not None:
            seen.together = max(seen.together, current.group.size)

    def new_level(self, env: Any) -> None:
        """A class of environments or wrappers is stepped for the first time."""
        seen = seen_of(self._profiler)
        if seen is not None:
            seen.saw_environment(env)

    def epoch_ended(self) -> None:
        """The training has learned from as many samples as it has collected."""
        self._profiler.announce("epoch")

    size_of = staticmethod(leading_dimension)
    ended_in = staticmethod(episodes_ended)

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
        """Stop applying the rules: the probe of a framework knows its loop."""
        self._settle()
        self.loop.on = False
        self._spans.close()

    def end(self) -> None:
        """The recording ends. The time since the last call in the last phase is not part of that phase."""
        self._spans.end_training()
        self.off()

    def after_fork(self) -> None:
        """In a forked child: the open phase and the optimizers are the parent's. The child may only step environments
        for its parent, so all of its steps count, and no phase is recorded before the child learns."""
        self._spans.open, self._spans.held = NONE, True
        self._marked = -1
        self.loop.phase = NONE
        self.loop.steps = 0
        self.loop.training = self.loop.stepping = self.loop.learned = False
        self.loop.forget_levels()

    # ---- phases ----

    def _begin_rollout(self) -> None:
        loop = self.loop
        if not loop.on or not loop.training or loop.phase == ROLLOUT:
            return
        if loop.phase == PREFILL:
            self._end_prefill()
        loop.phase = ROLLOUT
        loop.steps, self._interrupted = self._interrupted, 0
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
        self._record(PREFILL)

    def _end_prefill(self) -> None:
        """A forward pass chooses actions, or an evaluation begins."""
        self._prefilling = False
        self._credit()
        self._prefilled = self._take_back()
        self.loop.counting = True

    def _take_back(self) -> tuple[int, int]:
        """Do not count this stretch. Returns its steps and episodes, plus those of the prefill so far."""
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
        self._record(EVALUATION)

    def _end_evaluation(self) -> None:
        if self._spans.allowed():
            self._spans.close()
        self.loop.phase = UPDATE if self._learned else NONE

    def _take_for_evaluation(self, group: Group) -> None:
        """Before anything is learned, another environment follows whole episodes. Those were an evaluation."""
        if any(other is not group and other.counted[0] for other in self._environments.stretch):
            return
        if self._spans.allowed() and self._spans.open == ROLLOUT:
            self._spans.close()
            self._spans.rename(ROLLOUT, EVALUATION)
        self.loop.recount(-group.counted[0], -group.counted[1])
        group.counted = (0, 0)
        self._unmark()
        self.loop.phase = NONE

    def _credit(self) -> None:
        steps, episodes = self.loop.take_block()
        self._environments.credit(steps, episodes, self.loop.counting)

    def _end_stretch(self) -> bool:
        """The training learns from the last steps. Returns True if their environment was not known to train."""
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
            loop.recount(*self._prefilled)  # rlprof does not see this policy act, so there was no prefill
            self._prefilled = (0, 0)
        self._learned = loop.counting = True
        loop.prefilled = loop.mixed = False
        return new

    def _complete_first(self, steps: int) -> None:
        """Epsilon-greedy steps after a prefill look like a part of it. Once the number of steps between two updates is
        known, as many steps before the first update were training."""
        if not self._learned:
            self._first_steps = steps if self._prefilled[0] else None
        elif self._first_steps is not None:
            more = max(0, min(steps - self._first_steps, self._prefilled[0]))
            self.loop.recount(more, 0)
            self._prefilled = self._prefilled[0] - more, self._prefilled[1]
            self._first_steps = None

    def _settle(self) -> None:
        """Recording ends. Drop an iteration that has not learned. If nothing was ever learned, all steps count."""
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
        """True if the program counts steps, or if other processes may have made some."""
        return bool(self._ledger.steps or self._ledger.members() or _children() > self._children_before)

    def _fits(self, size: int) -> bool:
        """True if a batch may hold observations: one for each environment that is stepped at once, or alternately."""
        stepped = self._environments.stepped
        return bool(size == self.loop.envs or (stepped is not None and size <= stepped.group.size))

    def _record(self, phase: int) -> None:
        self._ledger.end_startup()
        if self._spans.allowed():
            self._spans.begin(phase)


def _children() -> float:
    """CPU seconds of the child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system
