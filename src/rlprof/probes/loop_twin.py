"""The Loop in Python: the state of a training, found by its calls of environments, networks and optimizers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from threading import get_ident
from typing import TYPE_CHECKING, Any

from rlprof.probes.loop import EVALUATION, NONE, PREFILL, ROLLOUT, UPDATE

if TYPE_CHECKING:
    from rlprof.ledger.twin.ledger import Ledger
    from rlprof.ledger.twin.span import Span

MAX_FORWARDS = 32
MAX_SIZES = 16

NO_PHASE = "the phases of this training could not be found"

Call = tuple["Span | nullcontext[None]", int, bool]
"""The span of a call, its number of environments, and True if the driver calls, outside of other environments."""

Forwards = dict[tuple[int, bool], None]
"""Kinds of forward passes, by leading dimension and gradient mode; the oldest first."""


class Loop:
    """The state that the rules read. They are called only where something may change."""

    def __init__(self, ledger: Ledger, rules: Any, acts: Span, learns: Span, inside_env: Span) -> None:
        self._ledger = ledger
        self._rules = rules
        self._acts = acts
        self._learns = learns
        self._inside_env = inside_env
        self._is_grad_enabled: Callable[[], bool] = bool
        self._is_traced: Callable[[], Any] = bool
        self._is_anomaly_enabled: Callable[[], bool] = bool
        self._tensor: type | None = None
        self.phase = NONE
        self.on = self.counts_steps = self.counts_episodes = self.counting = True
        self.training = self.stepping = self.learned = self.filling = False
        self.action_chosen = self.acted = self.prefilled = self.mixed = self.fresh = self.stepped = self.whole = False
        self.last_ended = 0
        self._env = 0
        self._block = (0, 0)
        self.counted_steps = self.counted_episodes = self.steps = 0
        self.envs = 1
        self._acting: Forwards = {}
        self._recent: Forwards = {}
        self._batch = self._samples = self._learning_batch = 0
        self._acting_sizes: dict[int, int] = {}
        self._learning_sizes: dict[int, int] = {}
        self.backwards = self.anomalous = 0

    def use_torch(
        self,
        is_grad_enabled: Callable[[], bool],
        is_traced: Callable[[], Any],
        tensor: type,
        is_anomaly_enabled: Callable[[], bool] = bool,
    ) -> None:
        self._is_grad_enabled, self._is_traced, self._tensor = is_grad_enabled, is_traced, tensor
        self._is_anomaly_enabled = is_anomaly_enabled

    def batch_sizes(self) -> tuple[dict[int, int], dict[int, int]]:
        """How often each batch size acted, and how often an optimizer learned from each."""
        return dict(self._acting_sizes), dict(self._learning_sizes)

    def env_levels(self) -> list[tuple[type, int, int, int]]:
        """Always empty: only the C core times the levels of environments."""
        return []

    def forget_levels(self) -> None:
        pass

    def forget_recent(self) -> None:
        self._recent.clear()

    def forget_env(self) -> None:
        self._env = 0

    def take_block(self) -> tuple[int, int]:
        """The driver's steps and episodes since the last call."""
        taken, self._block = self._block, (0, 0)
        return taken

    def recount(self, steps: int, episodes: int) -> None:
        """Add to the count, or subtract."""
        counted = self._ledger.recount(steps * self.counts_steps, episodes * self.counts_episodes)
        self.counted_steps += counted[0]
        self.counted_episodes += counted[1]

    def has_acted(self, size: int, gradients: bool) -> bool:
        return (size, gradients) in self._acting

    def before(self, kind: str, usual: Span, args: list[Any]) -> Call:
        if kind == "forward":
            return self._forward(args[1] if len(args) > 1 else None), 0, False
        if kind in ("step", "vector_step", "step_wait"):
            envs = 1 if kind == "step" else int(getattr(args[0], "num_envs", 0))
            driving = kind != "step_wait" and self._enter_env(args[0] if args else None, envs)
            self.stepped = True
            return usual, envs, driving
        if kind == "reset":
            return usual, 0, self._enter_env(args[0] if args else None, 0)
        if kind == "loss":
            self._note_loss(args[1] if len(args) > 1 else None)
        if kind in ("loss", "level"):
            return usual, 0, False
        if kind == "dones":
            self._count_dones(args[2] if len(args) > 2 else None)
            return nullcontext(), 0, False
        if kind == "backward":
            self._before_backward()
        elif self.on and not self.stepping and self.steps and self._is_driver():
            if kind == "optimizer":
                self._note_learning()
            self._begin_update()
        return usual, 0, False

    def leave(self, call: Call) -> None:
        """The call has ended, also by an exception."""
        if call[2]:
            self.stepping = False

    def after(self, kind: str, call: Call, result: Any) -> None:
        _, envs, driving = call
        if kind == "optimizer" and not self.stepping and self._is_driver():
            self._after_optimizer()
        if kind not in ("step", "vector_step", "step_wait"):
            return
        if not self.on or not (driving or (not self.stepping and self._ledger.driver)):
            return
        self._ledger.trained = self._ledger.now()
        counts = self.counting or not driving
        ended = self._ended_in(result)
        if kind != "step":
            envs = _length(result, envs)
        if counts:
            self.recount(envs, ended)
        if driving:
            self._block = self._block[0] + envs, self._block[1] + ended
            self.last_ended, self.whole = ended, ended > 0 and ended >= envs

    def _ended_in(self, result: Any) -> int:
        try:
            _, _, terminated, truncated, _ = result
            if isinstance(terminated, bool) and isinstance(truncated, bool):
                return int(terminated or truncated)
            flags = zip(memoryview(terminated).tobytes(), memoryview(truncated).tobytes())
            return sum(bool(one or other) for one, other in flags)
        except Exception:
            return (self._call_rules("ended_in", result) or 0) if self.counts_episodes else 0

    def _count_dones(self, dones: Any) -> None:
        if dones is None:
            return
        try:
            flags = [bool(done) for done in dones]
        except Exception as error:
            self._ledger.hooks.warn("environment steps and episodes are not all counted", error)
            return
        if self.filling:
            return
        self._ledger.add_steps(len(flags))
        self._ledger.add_episodes(sum(flags))

    def _forward(self, argument: Any) -> Span:
        gradients = self._is_grad_enabled()
        usual = self._learns if gradients else self._acts
        if not self.on or not self._is_driver():
            return usual
        if self.stepping or (self.phase == NONE and not (self.training and self._env)):
            return self._inside_env if self.stepping else usual
        size = self._plain_length(argument)
        if size is None:
            if self._is_traced():
                return usual
            size = self._call_rules("size_of", argument)
        if type(size) is not int:
            self.action_chosen |= self.phase != UPDATE
            return self._learns if self.phase == UPDATE else self._acts
        acts = self.has_acted(size, gradients)
        if self.phase == EVALUATION and self.whole and acts:
            self._call_rules("after_episode")
        if self.phase == EVALUATION:
            self.action_chosen = True
            return self._acts
        if acts != (self.phase == ROLLOUT) or self.phase in (NONE, PREFILL):
            acts = bool(self._call_rules("is_acting", size, gradients))
        _add(self._recent, (size, gradients))
        self.action_chosen |= acts
        if acts:
            _count(self._acting_sizes, size)
        else:
            self._batch = max(self._batch, size)
            self._learning_batch = max(self._learning_batch, size)
        return self._acts if acts else self._learns

    def _after_optimizer(self) -> None:
        """An epoch has ended once the training has learned from as many samples as it has collected."""
        self.learned = self._ledger.learned = True
        self._ledger.trained = self._ledger.now()
        if self._learning_batch:
            _count(self._learning_sizes, self._learning_batch)
        self._learning_batch = 0
        self._samples += self._batch
        self._batch = 0
        if self.on and 0 < self.steps <= self._samples:
            self._samples = 0
            self._call_rules("epoch_ended")

    def _note_loss(self, argument: Any) -> None:
        """The call of a loss, which learns from the batch that it gets."""
        if self._is_driver() and not self._is_traced():
            size = self._call_rules("size_of", argument)
            if type(size) is int:
                self._learning_batch = max(self._learning_batch, size)

    def _plain_length(self, argument: Any) -> Any:
        """Length of a plain tensor, from its base in C, which torch.jit.trace does not record."""
        if self._tensor is None or type(argument) is not self._tensor:
            return None
        base: Any = self._tensor.__base__
        return base.__len__(argument) or None  # also 0 without dimensions

    def _before_backward(self) -> None:
        self.backwards += 1
        self.anomalous += bool(self._is_anomaly_enabled())
        if not self.stepping:
            self._ledger.training_begins(True)
        if not self.on or self.stepping or not self._is_driver():
            return
        self._note_learning()
        for kind in self._recent:
            if kind[0] != self.envs:
                self._acting.pop(kind, None)
        self._recent.clear()
        self._begin_update()

    def _begin_update(self) -> None:
        if self.phase not in (NONE, UPDATE):
            self._call_rules("begin_update")

    def _note_learning(self) -> None:
        """Learning begins. A forward pass alone does not count, as it may be misjudged."""
        if self.fresh:
            self.fresh = False
            self._ledger.training_begins(True)
            self._call_rules("learns")

    def _enter_env(self, env: Any, envs: int) -> bool:
        if envs and self.on and not self.stepping:
            self._ledger.training_begins(False)
        if self.stepping or not self._is_driver():
            return False
        if self.on and self.training:
            if env is not None and id(env) != self._env:
                self._env = id(env)
                self._call_rules("switch_to", env, not envs)
            if self._may_begin(envs > 0):
                self._call_rules("before_rollout")
        self.stepping = True
        self.acted |= envs > 0 and self.action_chosen
        self.fresh |= envs > 0
        self.action_chosen = self.whole = False
        if envs and self.phase != EVALUATION:
            if self.steps == 0:
                self._samples = self._batch = 0
            self.envs = envs
            self.steps += envs
            for kind in self._recent:
                _add(self._acting, kind)
            self._recent.clear()
        return True

    def _may_begin(self, steps: bool) -> bool:
        """True if a rollout or a prefill may begin, so that the rules must be called."""
        if self.phase == NONE:
            return steps
        if self.phase == ROLLOUT:
            return self.learned or (steps and self.prefilled and not self.action_chosen)
        if self.phase == PREFILL:
            return steps and self.action_chosen and not self.mixed
        return self.phase == UPDATE

    def _is_driver(self) -> bool:
        return bool(get_ident() == self._ledger.driver)

    def _call_rules(self, method: str, *args: Any) -> Any:
        own = self._ledger.own_time(True)
        try:
            return getattr(self._rules, method)(*args)
        except Exception as error:
            what = "episodes could not be counted" if method == "ended_in" else NO_PHASE
            self._ledger.hooks.warn(what, error)
            return None
        finally:
            self._ledger.own_time(own)


def _length(result: Any, envs: int) -> int:
    """Number of environments that a vector has stepped, by its result: it may step only some of its own."""
    try:
        _, _, terminated, truncated, _ = result
        one, other = memoryview(terminated), memoryview(truncated)
        return one.nbytes if one.itemsize == 1 and one.nbytes == other.nbytes else envs
    except Exception:
        return envs


def _count(sizes: dict[int, int], size: int) -> None:
    if size in sizes or len(sizes) < MAX_SIZES:
        sizes[size] = sizes.get(size, 0) + 1


def _add(forwards: Forwards, kind: tuple[int, bool]) -> None:
    forwards[kind] = None
    if len(forwards) > MAX_FORWARDS:
        del forwards[next(iter(forwards))]
