"""Records a training with stable-baselines3: `model.learn(total, callback=RlprofCallback())`."""

from __future__ import annotations

import sys
from threading import get_ident
from types import FrameType

from rlprof.api import CallbackRecording
from rlprof.probes import phases
from rlprof.probes.stable_baselines3 import is_attached

try:
    from stable_baselines3.common.callbacks import BaseCallback
except ImportError as error:
    raise ImportError("RlprofCallback needs stable-baselines3: pip install stable-baselines3") from error

_running: dict[int, RlprofCallback] = {}
"""The callback that records, by the thread that trains."""


class RlprofCallback(CallbackRecording, BaseCallback):
    """Records a session while learn() runs, and times every operation that rlprof knows.

    name: session name (default: the algorithm's name).
    options: options of `rlprof.record`.
    """

    _learn: FrameType | None = None

    def _on_training_start(self) -> None:
        left = _running.get(get_ident())
        if left is not None and not left._is_learning():
            left._end("failed")  # an exception ended its learn(), and callbacks are not called then
        self._start(type(self.model).__name__.lower(), is_attached())
        if self._attached is not None:
            phases.off()  # the probe was attached after learn() began
        if self._attached is not None or self.recording is not None:
            self._learn = _caller("learn")
            _running[get_ident()] = self

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._end("finished")

    def _end(self, how: str) -> None:
        if _running.get(get_ident()) is self:
            del _running[get_ident()]
        self._learn = None
        self._stop(how)

    def _is_learning(self) -> bool:
        """True if the learn() that started this recording is still running."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame is not self._learn:
            frame = frame.f_back
        return frame is not None


def _caller(name: str) -> FrameType | None:
    """The innermost running function of this name."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != name:
        frame = frame.f_back
    return frame
