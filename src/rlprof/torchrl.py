"""Records a training with TorchRL's Trainer: `RlprofHook().register(trainer)`."""

from __future__ import annotations

from typing import Any

from rlprof.api import CallbackRecording
from rlprof.ledger.profiler import get_profiler
from rlprof.probes._torchrl_iterations import is_attached

try:
    from torchrl.trainers import Trainer
    from torchrl.trainers.trainers import TrainerHookBase
except ImportError as error:
    raise ImportError("RlprofHook needs TorchRL: pip install torchrl") from error


class RlprofHook(CallbackRecording, TrainerHookBase):  # type: ignore[misc]  # TorchRL has no type hints
    """Records a session while train() runs, and times every operation that rlprof knows.

    name: session name (default: the name of the trainer's class).
    options: options of `rlprof.record`.

    No hook is called if an exception ends train(). The session then ends with the next train() or with the process.
    """

    def register(self, trainer: Trainer, name: str = "rlprof") -> None:
        self._name = self._name or type(trainer).__name__.lower()
        trainer.register_module(name, self)
        trainer.register_op("setup", self.start)
        trainer.register_op("shutdown", self.stop)

    def start(self) -> None:
        """Called before the first batch."""
        self.stop("failed")
        self._start(None, is_attached(get_profiler()))

    def stop(self, how: str = "finished") -> None:
        """Called after the last batch."""
        self._stop(how)

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the hook has no state to save."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass
