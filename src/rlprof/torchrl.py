"""Records a training with TorchRL's Trainer: `RlprofHook().register(trainer)`."""

from __future__ import annotations

from typing import Any

from rlprof.api import record
from rlprof.ledger.profiler import get_profiler
from rlprof.probes._torchrl_iterations import is_attached
from rlprof.probes.registry import Attached, find_probes
from rlprof.recording.recording import Recording

try:
    from torchrl.trainers import Trainer
    from torchrl.trainers.trainers import TrainerHookBase
except ImportError as error:
    raise ImportError("RlprofHook needs TorchRL: pip install torchrl") from error


class RlprofHook(TrainerHookBase):  # type: ignore[misc]  # TorchRL has no type hints
    """Records a session while train() runs, and times every operation that rlprof knows.

    name: session name (default: the name of the trainer's class).
    options: options of `rlprof.record`.

    If the program is already recorded, by `rlprof run` or by `record`, the hook only times operations. No hook is
    called if an exception ends train(). The session then ends with the next train() or with the process.
    """

    def __init__(self, name: str | None = None, **options: Any) -> None:
        self.recording: Recording | None = None
        """The recording of the last train(). None if the program was recorded already."""
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
            profiler.warn("this training cannot be recorded as configured", error)

    def stop(self, how: str = "finished") -> None:
        """Called after the last batch."""
        if self.recording is not None:
            self.recording.stop(how)
        if self._attached is not None:
            self._attached.undo()
            self._attached = None

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the hook has no state to save."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass
