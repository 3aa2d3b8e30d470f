"""One line for a training with TorchRL's Trainer: `RlprofHook().register(trainer)`."""

from __future__ import annotations

from typing import Any

from rlprof.ledger.profiler import get_profiler
from rlprof.probes._torchrl_iterations import is_attached
from rlprof.probes.registry import Attached, find_probes
from rlprof.recording.record import record
from rlprof.recording.recording import Recording

try:
    from torchrl.trainers import Trainer
    from torchrl.trainers.trainers import TrainerHookBase
except ImportError as error:
    raise ImportError("RlprofHook needs TorchRL: pip install torchrl") from error


class RlprofHook(TrainerHookBase):  # type: ignore[misc]  # TorchRL has no type hints
    """Records a session for as long as train() runs, with every operation timed that rlprof knows.

    name: of the session; the trainer's class unless told.
    options: those of `rlprof.record`.

    Where the program is recorded already, by `rlprof run` or by `record`, it only sees to it that operations are timed.
    A train() that is left by an exception tells no hook: the session then goes on to the next train(), or to the end of
    the process.
    """

    def __init__(self, name: str | None = None, **options: Any) -> None:
        self.recording: Recording | None = None
        """Of the last train(); None where somebody else records."""
        self._name = name
        self._options = options
        self._attached: Attached | None = None

    def register(self, trainer: Trainer, name: str = "rlprof") -> None:
        self._name = self._name or type(trainer).__name__.lower()
        trainer.register_module(name, self)
        trainer.register_op("setup", self.start)
        trainer.register_op("shutdown", self.stop)

    def start(self) -> None:
        """Called before the first batch."""
        self.stop("failed")
        profiler = get_profiler()
        try:
            if not is_attached(profiler):
                self._attached = Attached(profiler)
                self._attached.attach(find_probes())
            self.recording = None
            if profiler.recording is None:
                self.recording = record(self._name, **self._options)
        except Exception as error:
            profiler.warn("this training is not recorded as asked", error)

    def stop(self, how: str = "finished") -> None:
        """Called after the last batch."""
        if self.recording is not None:
            self.recording.stop(how)
        if self._attached is not None:
            self._attached.undo()
            self._attached = None

    def state_dict(self) -> dict[str, Any]:
        """A checkpoint needs nothing of it."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass
