"""What the probes know about a training besides its times: sizes, settings and counts that explain them.

A session holds one `Evidence`. Each flush replaces it. Everything counts from the start of the process unless stated
otherwise. A probe that is not attached, or a library that is not used, leaves its part empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

Count = Annotated[int, Meta(ge=0, le=2**62)]


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Optimizers of torch that are alike."""

    name: str
    """Of the class."""
    number: Count
    """How many there are."""
    tensors: Count
    """Number of parameter tensors of each."""
    elements: Count
    """Number of parameters in all of these tensors."""
    foreach: bool | None
    fused: bool | None
    """None: not set. On a CPU, torch then updates one tensor after the other."""
    device: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Batch:
    size: Count
    count: Count


@dataclass(frozen=True, slots=True)
class Batches:
    """Leading dimensions of the inputs of networks, the most frequent first."""

    acting: tuple[Batch, ...] = ()
    """Of forward passes that choose actions."""
    learning: tuple[Batch, ...] = ()
    """Of the largest batch before each optimizer step."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A function that torch.compile has compiled."""

    function: str
    file: str
    line: Count
    again: Count
    """Compilations after its first one."""
    again_ns: Count
    reasons: tuple[str, ...] = ()
    """Dynamo's reasons for compiling it again, the first three."""


@dataclass(frozen=True, slots=True)
class Compiling:
    """What torch.compile did, by Dynamo's own records."""

    number: Count = 0
    """Compilations, of forward and backward passes."""
    ns: Count = 0
    again: Count = 0
    """Compilations of a function that was compiled already."""
    again_ns: Count = 0
    frames: tuple[Frame, ...] = ()
    """The functions that were compiled again, the longest compilation first."""


@dataclass(frozen=True, slots=True)
class Generation:
    """Runs of Python's garbage collector for one generation, since the training began."""

    runs: Count
    ns: Count
    longest_ns: Count
    freed: Count
    """Objects."""
    before_ns: Count
    """Time of the runs before the training began."""


@dataclass(frozen=True, slots=True)
class Loader:
    """DataLoaders that are alike."""

    workers: Count
    persistent: bool
    dataset: Count | None
    """Number of samples. None if unknown."""
    batch: Count | None
    loaders: Count
    iterators: Count
    """How often an iteration over one of them began. Each starts the workers, unless they are persistent."""


@dataclass(frozen=True, slots=True)
class Level:
    """A class of environments or wrappers. One of 17 steps also times the calls of `step` inside the outermost one."""

    name: str
    module: str
    depth: Count
    """0 for the outermost."""
    wraps: bool
    """True for a wrapper, False for an environment or a vector of environments."""
    calls: Count
    """Calls that were timed."""
    own_ns: Count
    """Time of these calls without the levels below."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment as the training calls it."""

    chain: tuple[str, ...]
    """Names of the classes, outermost first."""
    kind: str
    """`single`, `sync` if one process steps several in turn, `workers` if worker processes step them, or `vector`."""
    envs: Count
    observation_bytes: Count | None
    """Of one step of all environments. None if unknown."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process."""

    name: str
    torch_threads: Count | None
    """None if the process has not imported torch."""
    cpu_ns: Count
    """CPU time of all of its threads."""
    helpers_cpu_ns: Count
    """CPU time of the threads other than its main thread: torch's helpers, and others."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer whose memory a library allocates at once, but which becomes resident only as it is filled."""

    name: str
    capacity: Count
    filled: Count
    bytes: Count | None
    """When it is full. None if unknown."""


@dataclass(frozen=True, slots=True)
class Torch:
    """Settings of torch at the last flush."""

    threads: Count
    interop_threads: Count
    omp_num_threads: str | None
    """The environment variable. None if it is not set."""
    deterministic: bool
    dtype: str
    """Default type of floating-point tensors."""
    mkldnn: bool
    backwards: Count
    """Backward passes."""
    anomalous: Count
    """Backward passes in torch's anomaly mode."""


@dataclass(frozen=True, slots=True)
class Evidence:
    optimizers: tuple[Optimizer, ...] = ()
    batches: Batches = field(default_factory=Batches)
    compiling: Compiling = field(default_factory=Compiling)
    collections: tuple[Generation, ...] = ()
    """The youngest generation first."""
    loaders: tuple[Loader, ...] = ()
    levels: tuple[Level, ...] = ()
    """Of the driver and of all worker processes, outermost first."""
    environments: tuple[Environment, ...] = ()
    together: Count = 1
    """Environments that the loop of the program steps one after the other, each by a call of its own."""
    workers: tuple[Worker, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    torch: Torch | None = None
    """None if torch is not imported."""
