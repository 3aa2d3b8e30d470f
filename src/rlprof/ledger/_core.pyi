"""The C core. Its Python twin, rlprof.ledger.twin, has the same surface and the same behaviour."""

from collections.abc import Callable
from typing import Any

# Only Profiler makes a ledger, and only a ledger makes spans.
from rlprof.ledger.interface import Ledger as Ledger
from rlprof.ledger.interface import Span as Span

LAYOUT: dict[str, tuple[tuple[str, str, int], ...]]
"""Columns of every record: see `rlprof.ledger.rows.check`."""

def tsc_refusal() -> str | None: ...
def tsc_rate() -> str: ...
def bucket(ns: int, /) -> int: ...
def exit_follow() -> None: ...
def exit_code() -> int | str | None: ...
def signal_follow(number: int, /) -> None: ...
def signal_seen(number: int, /) -> None: ...
def signal_unseen(number: int, /) -> bool: ...
def read_held(file: int, size: int, /) -> bytes: ...

class Timed:
    def __init__(
        self,
        span: Span,
        function: Callable[..., Any],
        method: Callable[..., Any],
        outermost: bool = False,
        around: Callable[..., Any] | None = None,
        family: tuple[Span, ...] = (),
        loop: Loop | None = None,
        kind: str = "forward",
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class Loop:
    phase: int
    on: bool
    training: bool
    stepping: bool
    learned: bool
    action_chosen: bool
    acted: bool
    prefilled: bool
    mixed: bool
    counting: bool
    filling: bool
    fresh: bool
    stepped: bool
    last_ended: int
    whole: bool
    counts_steps: bool
    counts_episodes: bool
    counted_steps: int
    counted_episodes: int
    envs: int
    steps: int
    backwards: int
    anomalous: int
    def __init__(
        self,
        ledger: Ledger,
        rules: Any,
        acts: Span,
        learns: Span,
        inside_env: Span,
    ) -> None: ...
    def use_torch(
        self,
        is_grad_enabled: Callable[[], bool],
        is_traced: Callable[[], Any],
        tensor: type,
        is_anomaly_enabled: Callable[[], bool] | None = None,
        /,
    ) -> None: ...
    def batch_sizes(self) -> tuple[dict[int, int], dict[int, int]]: ...
    def env_levels(self) -> list[tuple[type, int, int, int]]: ...
    def forget_levels(self) -> None: ...
    def forget_recent(self) -> None: ...
    def has_acted(self, size: int, gradients: bool, /) -> bool: ...
    def forget_env(self) -> None: ...
    def take_block(self) -> tuple[int, int]: ...
    def recount(self, steps: int, episodes: int, /) -> None: ...
