"""Reads what the probes have seen into the evidence of a session. A flush does it, on rlprof's own thread."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary, ref

from rlprof.ledger.profiler import Profiler
from rlprof.probes.dynamo import DynamoRecords
from rlprof.probes.seen import Seen, held, levels_of, seen_of, text
from rlprof.session.evidence import (
    Batch,
    Batches,
    Buffer,
    Environment,
    Evidence,
    Generation,
    Level,
    Loader,
    Optimizer,
    Torch,
)

ARRAYS = (
    "observations", "next_observations", "actions", "rewards", "dones", "timeouts", "returns", "advantages", "values",
    "log_probs", "episode_starts",
)  # fmt: skip
"""Names of the arrays that the buffers of stable-baselines3 have."""
MOST = 64
"""Limit for the entries of each kind. The largest stay."""


class EvidenceReader:
    """Reads the evidence of one profiler. It remembers what does not change, so that a flush stays cheap."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self._dynamo = DynamoRecords()
        self._optimizers: WeakKeyDictionary[Any, tuple[int, Optimizer | None]] = WeakKeyDictionary()
        self._gone: Counter[Optimizer] = Counter()
        self._bytes: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def read(self) -> Evidence:
        seen = seen_of(self._profiler)
        if seen is None:
            return Evidence()
        return Evidence(
            optimizers=self._read_optimizers(seen),
            batches=_batches(seen),
            compiling=self._dynamo.read(),
            collections=tuple(Generation(*row) for row in self._profiler.ledger.collections()),
            loaders=tuple(Loader(*kind, *counts) for kind, counts in list(seen.loaders.items())[:MOST]),
            levels=tuple(Level(*row) for row in sorted(levels_of(seen), key=lambda row: row[2])),
            environments=tuple(
                Environment(tuple(map(text, chain)), kind, envs, size)
                for chain, kind, envs, size in seen.environments[:MOST]
            ),
            together=seen.together,
            buffers=tuple(self._read_buffers(seen)),
            torch=_torch(seen),
        )

    def _read_optimizers(self, seen: Seen) -> tuple[Optimizer, ...]:
        alike: Counter[Optimizer] = Counter()
        for optimizer in _alive(seen.optimizers):
            with suppress(Exception):  # it is being made at this moment, or is of an unusual kind
                tensors = sum(len(group["params"]) for group in optimizer.param_groups)
                known = self._optimizers.get(optimizer)
                if known is None or known[0] != tensors:
                    known = self._optimizers[optimizer] = tensors, _optimizer(optimizer)
                if known[1] is not None:
                    alike[known[1]] += 1
        # The last flush of a short run may come when its optimizers are gone.
        for kind, number in alike.items():
            self._gone[kind] = max(self._gone[kind], number)
        return tuple(_numbered(kind, number) for kind, number in self._gone.most_common(MOST))

    def _read_buffers(self, seen: Seen) -> Iterable[Buffer]:
        for model in _alive(seen.models):
            for name in ("replay_buffer", "rollout_buffer"):
                buffer = held(model, name)
                if buffer is not None:
                    with suppress(Exception):
                        yield _sb3_buffer(buffer, held(model, "n_envs") or 1)
        for buffer in _alive(seen.buffers):
            with suppress(Exception):
                yield self._torchrl_buffer(buffer)

    def _torchrl_buffer(self, buffer: Any) -> Buffer:
        storage = buffer._storage
        data: Any = getattr(storage, "_storage", None)
        size = self._bytes.get(storage)
        if size is None and getattr(data, "is_locked", None) is not None:  # a tensordict, which has its full length
            size = sum(leaf.numel() * leaf.element_size() for leaf in data.values(True, True))
            self._bytes[storage] = size
        return Buffer(text(type(storage).__name__), int(storage.max_size), len(storage), size)


def _alive(references: list[ref[Any]]) -> Iterable[Any]:
    found = (reference() for reference in list(references))
    return [thing for thing in found if thing is not None]


def _optimizer(optimizer: Any) -> Optimizer | None:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if not parameters:
        return None
    group = optimizer.param_groups[0]
    return Optimizer(
        name=text(type(optimizer).__name__),
        number=0,
        tensors=len(parameters),
        elements=sum(parameter.numel() for parameter in parameters),
        foreach=_flag(group.get("foreach")),
        fused=_flag(group.get("fused")),
        device=text(parameters[0].device.type),
        dtype=text(parameters[0].dtype).removeprefix("torch."),
    )


def _flag(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _numbered(kind: Optimizer, number: int) -> Optimizer:
    return Optimizer(kind.name, number, kind.tensors, kind.elements, kind.foreach, kind.fused, kind.device, kind.dtype)


def _batches(seen: Seen) -> Batches:
    if seen.loop is None:
        return Batches()
    acting, learning = seen.loop.batch_sizes()
    for model in _alive(seen.models) if not learning else ():
        with suppress(Exception):
            envs = held(model, "n_envs")
            size = held(model, "batch_size") or held(model, "n_steps") * envs
            learning.setdefault(int(size), 0)
            acting.setdefault(int(envs), 0)
    return Batches(_sorted(acting), _sorted(learning))


def _sorted(sizes: dict[int, int]) -> tuple[Batch, ...]:
    return tuple(Batch(size, count) for size, count in sorted(sizes.items(), key=lambda item: (-item[1], item[0])))


def _sb3_buffer(buffer: Any, envs: int) -> Buffer:
    rows = int(held(buffer, "buffer_size"))
    filled = rows if held(buffer, "full") else int(held(buffer, "pos") or 0)
    arrays = (held(buffer, name) for name in ARRAYS)
    size = sum(array.nbytes for array in arrays if type(array).__name__ == "ndarray")
    return Buffer(text(type(buffer).__name__), rows * int(envs), filled * int(envs), size)


def _torch(seen: Seen) -> Torch | None:
    torch: Any = sys.modules.get("torch")
    if torch is None or seen.loop is None:
        return None
    try:
        return Torch(
            threads=torch.get_num_threads(),
            interop_threads=torch.get_num_interop_threads(),
            omp_num_threads=text(os.environ["OMP_NUM_THREADS"]) if "OMP_NUM_THREADS" in os.environ else None,
            deterministic=bool(torch.are_deterministic_algorithms_enabled()),
            dtype=text(torch.get_default_dtype()).removeprefix("torch."),
            mkldnn=bool(torch.backends.mkldnn.is_available()),
            backwards=seen.loop.backwards,
            anomalous=seen.loop.anomalous,
        )
    except Exception:
        return None  # torch is being imported at this moment
