"""What the probes of one profiler have seen: optimizers, loaders, buffers and environments.

Only references are kept here, and only when such an object is made or seen first. `evidence` reads them at each flush.
This module is imported by worker processes too, so it imports little.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from weakref import ref

from rlprof.ledger.profiler import Profiler
from rlprof.probes.patches import Patches

MOST = 256
"""Limit for the objects of one kind that are remembered."""

INNER = ("env", "venv")
"""Attributes in which wrappers keep what they wrap."""


class Seen:
    """The objects that one profiler's probes have seen. Weak references: nothing lives longer than without rlprof."""

    def __init__(self, profiler: Profiler) -> None:
        self.profiler = profiler
        self.loop: Any = None
        self.optimizers: list[ref[Any]] = []
        self.buffers: list[ref[Any]] = []
        self.models: list[ref[Any]] = []
        self.loaders: dict[tuple[Any, ...], list[int]] = {}
        """By settings: number of loaders, and of iterators."""
        self.environments: list[tuple[tuple[str, ...], str, int, int | None]] = []
        self.together = 1
        """Environments that a loop steps one after the other."""
        self._known_loaders: list[ref[Any]] = []
        self._inside: set[int] = set()
        """Addresses of the environments inside of those that were seen."""

    def saw_optimizer(self, optimizer: Any) -> None:
        _remember(self.optimizers, optimizer)

    def saw_buffer(self, buffer: Any) -> None:
        _remember(self.buffers, buffer)

    def saw_model(self, model: Any) -> None:
        """A model of stable-baselines3 that learns."""
        _remember(self.models, model)

    def saw_iterator(self, loader: Any) -> None:
        """An iteration over a DataLoader begins."""
        kind = (loader.num_workers, bool(loader.persistent_workers), _samples(loader), loader.batch_size)
        counts = self.loaders.setdefault(kind, [0, 0]) if len(self.loaders) < MOST else [0, 0]
        counts[0] += _remember(self._known_loaders, loader)
        counts[1] += 1

    def saw_environment(self, env: Any) -> None:
        """A class of environments is stepped for the first time."""
        if id(env) in self._inside or len(self.environments) >= MOST:
            return
        chain, kind, envs = [], "single", 1
        for level in _chain(env):
            chain.append(type(level).__name__)
            if kind in ("sync", "workers"):
                continue  # what is inside of a vector
            number = held(level, "num_envs")
            if isinstance(number, int) and not isinstance(number, bool):
                envs, kind = number, "vector"
            if isinstance(held(level, "envs"), list):
                kind = "sync"
            elif held(level, "processes") is not None:
                kind = "workers"
        self._inside.update(_inside(env))
        self.environments.append((tuple(chain), kind, envs, _observation_bytes(env, envs)))


def _remember(references: list[ref[Any]], thing: Any) -> bool:
    """Keep a weak reference. False if there is one already."""
    references[:] = [reference for reference in references if reference() is not None]
    if any(reference() is thing for reference in references):
        return False
    with suppress(TypeError):  # an object that allows no weak references
        references.append(ref(thing))
        del references[:-MOST]
    return True


def _samples(loader: Any) -> int | None:
    """Length of the dataset, if the loader's own sampler needs it anyway."""
    if type(loader.sampler).__name__ not in ("SequentialSampler", "RandomSampler"):
        return None
    try:
        return len(loader.dataset)
    except Exception:
        return None


def held(owner: Any, name: str) -> Any:
    """An attribute of an object, None if it has none. No code of the program runs, as getattr might. `__dict__` is not
    read: CPython would then keep the object's attributes in a dictionary, and reading them would be slower from then
    on, which cost a PPO on CartPole 1.5 %."""
    for base in type(owner).__mro__:
        if name in vars(base):
            if hasattr(type(vars(base)[name]), "__get__"):
                return None
            break
    try:
        return object.__getattribute__(owner, name)
    except AttributeError:
        return None


def _chain(env: Any) -> Iterator[Any]:
    """An environment, what it wraps, and so on. Of a vector's environments, the first."""
    for _ in range(64):
        yield env
        inside = held(env, "envs")
        following = next((found for name in INNER if (found := held(env, name)) is not None), None)
        if following is None and isinstance(inside, list) and inside:
            following = inside[0]
        if following is None or not type(following).__dictoffset__:
            return
        env = following


def _inside(env: Any) -> Iterator[int]:
    """Addresses of everything that is inside an environment."""
    for level in _chain(env):
        if level is not env:
            yield id(level)
        inside = held(level, "envs")
        if isinstance(inside, list):
            for other in inside[:MOST]:
                yield from map(id, _chain(other))
            return


def _observation_bytes(env: Any, envs: int) -> int | None:
    for level in _chain(env):
        for name in ("single_observation_space", "_observation_space", "observation_space"):
            space = held(level, name)
            shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
            if shape is not None and dtype is not None:
                size = int(dtype.itemsize)
                for length in shape:
                    size *= int(length)
                return size * envs
    return None


_seen: dict[Profiler, Seen] = {}


def seen_by(patches: Patches) -> Seen:
    """What the probes of a profiler have seen. Made for its first probe, and kept until that probe is undone."""
    profiler = patches.profiler
    seen = _seen.get(profiler)
    if seen is None:
        seen = _seen[profiler] = Seen(profiler)
        patches.at_undo(lambda: _forget(profiler))
    return seen


def _forget(profiler: Profiler) -> None:
    _seen.pop(profiler, None)


def seen_of(profiler: Profiler) -> Seen | None:
    """What the probes of a profiler have seen. None without probes."""
    return _seen.get(profiler)


def levels_of(seen: Seen) -> list[tuple[str, str, int, bool, int, int]]:
    """The rows of `rlprof.session.evidence.Level`."""
    if seen.loop is None:
        return []
    return [
        (text(kind.__name__), text(kind.__module__), depth, _wraps(kind), calls, max(0, own))
        for kind, depth, calls, own in seen.loop.env_levels()
        if calls
    ]


def _wraps(kind: type) -> bool:
    """True for a wrapper, of one environment or of a vector."""
    return any(base.__name__ in ("Wrapper", "VecEnvWrapper", "VectorWrapper") for base in kind.__mro__)


def text(value: Any) -> str:
    """A short text that UTF-8 and SQLite's JSON can hold."""
    return str(value)[:500].replace("\0", "?").encode("utf-8", "replace").decode()


def worker_evidence(profiler: Profiler) -> dict[str, Any]:
    """What a worker process sends to the driver."""
    seen = seen_of(profiler)
    torch = sys.modules.get("torch")
    threads: int | None = None
    with suppress(Exception):  # torch is being imported at this moment
        threads = int(torch.get_num_threads()) if torch is not None else None
    cpu = helpers = 0
    with suppress(Exception):  # not on every system
        cpu = time.process_time_ns()
        main = time.pthread_getcpuclockid(threading.main_thread().ident or 0)
        helpers = max(0, cpu - time.clock_gettime_ns(main))
    return {
        "torch_threads": threads,
        "cpu_ns": cpu,
        "helpers_cpu_ns": helpers,
        "levels": levels_of(seen) if seen is not None else [],
    }
