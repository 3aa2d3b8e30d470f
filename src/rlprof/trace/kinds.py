"""Kinds of events. Kineto has renamed its categories several times over the years."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    UNUSED = 0
    """An event that is not used, or not usable: it has no time or a negative duration."""
    OPERATOR = 1
    ANNOTATION = 2
    """A mark of `record_function` on the host: a profiler step or a phase."""
    PYTHON = 3
    RUNTIME = 4
    """A call of the CUDA or HIP runtime or driver: a launch, a copy, a synchronization."""
    KERNEL = 5
    COPY = 6
    FILL = 7
    DEVICE_ANNOTATION = 8
    SYNC = 9
    """A wait of a stream, as the device reports it."""
    MEMORY = 10
    """An allocation or a release, at an instant."""
    OVERHEAD = 11
    """Work of the profiler itself."""
    OTHER = 12


DEVICE_WORK = (Kind.KERNEL, Kind.COPY, Kind.FILL)

BY_CATEGORY = {
    "cpu_op": Kind.OPERATOR,
    "operator": Kind.OPERATOR,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON,
    "cuda_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.RUNTIME,
    "hip_runtime": Kind.RUNTIME,
    "privateuse1_runtime": Kind.RUNTIME,
    "runtime": Kind.RUNTIME,
    "kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.COPY,
    "memcpy": Kind.COPY,
    "gpu_memset": Kind.FILL,
    "memset": Kind.FILL,
    "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
    "cuda_sync": Kind.SYNC,
    "cpu_instant_event": Kind.MEMORY,
    "overhead": Kind.OVERHEAD,
}
"""Kinds by category in lower case."""

STEP_PREFIX = "ProfilerStep#"

ANNOTATIONS = (STEP_PREFIX, "enumerate(DataLoader)#", "Optimizer.step#", "Optimizer.zero_grad#")
"""Prefixes of torch's own annotations. Old versions of Kineto list them as operators."""
