"""The process's profiler as functions: `rlprof.profile`, `rlprof.iteration` and the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from rlprof.ledger.interface import F, Span
from rlprof.ledger.profiler import Iteration, get_profiler
from rlprof.ledger.snapshot import Snapshot

_profiler = get_profiler()

if TYPE_CHECKING:

    def profile(
        name: str,
        track_memory: bool = False,
        category: str | None = None,
        wait: bool = False,
        device: bool | None = None,
    ) -> Span:
        """Time a block of code.

            with profile("env_step"):
                observation, reward, *_ = env.step(action)

        track_memory: also record the peak memory inside the block, of the process and of the device.
        category: kind of work, for a name that docs/operations.md does not list.
        wait: this thread only waits for other threads or processes inside the block.
        device: also time the block on the device (default: the category decides).
        """

else:
    profile = _profiler.profile  # the core's own: a function around it would cost more than the span


@overload
def profile_function(name: F, /) -> F: ...
@overload
def profile_function(
    name: str | None = None,
    *,
    track_memory: bool = False,
    category: str | None = None,
    wait: bool = False,
    device: bool | None = None,
) -> Callable[[F], F]: ...
def profile_function(
    name: Any = None,
    *,
    track_memory: bool = False,
    category: str | None = None,
    wait: bool = False,
    device: bool | None = None,
) -> Any:
    """Time every call of a function, method, coroutine or generator.

        @profile_function("env_step")
        def step(self, action): ...

    name: name of the operation (default: the function's name).
    The options are those of `profile`.
    """
    return _profiler.profile_function(name, track_memory=track_memory, category=category, wait=wait, device=device)


def iteration() -> Iteration:
    """Begin an iteration of the training, which is one round of collecting and updating.

        for _ in range(iterations):
            with iteration():
                collect()
                update()

    Without `with`, the iteration ends where the next one begins.
    """
    return _profiler.iteration()


def add_steps(number: int) -> None:
    """Count environment steps. Steps per second rest on them.

    add_steps(len(envs))  # after each step of a vector of environments
    """
    _profiler.add_steps(number)


def add_episodes(number: int) -> None:
    """Count episodes that have ended.

    add_episodes(int(dones.sum()))
    """
    _profiler.add_episodes(number)


def enable(timeline: int | None = None) -> None:
    """Begin or continue recording in memory. `record()` does this by itself.

    timeline: keep the last so many spans as events, 24 bytes each.
    """
    _profiler.enable(timeline)


def disable() -> None:
    """Stop recording. Everything recorded so far is kept."""
    _profiler.disable()


def reset() -> None:
    """Forget everything recorded so far. Open spans count from here."""
    _profiler.reset()


def snapshot() -> Snapshot:
    """Everything recorded so far in this process. Open spans count up to now.

    print(snapshot().account("env_step").ledger_ns)
    """
    return _profiler.snapshot()
