"""What an event is. Kineto has named its categories in several ways over the years."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    UNUSED = 0
    """Nothing that is looked at, or nothing that can be: no time, a negative duration."""
    OPERATOR = 1
    ANNOTATION = 2
    """What `record_function` marks on the host: profiler steps, phases."""
    PYTHON = 3
    RUNTIME = 4
    """A call of CUDA's or HIP's runtime or driver: launches, copies, synchronisations."""
    KERNEL = 5
    COPY = 6
    FILL = 7
    DEVICE_ANNOTATION = 8
    SYNC = 9
    """What a stream waits for, as the device tells it."""
    MEMORY = 10
    """An allocation or a release, at an instant."""
    OVERHEAD = 11
    """The profiler's own."""
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
"""In lower case."""

STEP_PREFIX = "ProfilerStep#"

ANNOTATIONS = (STEP_PREFIX, "enumerate(DataLoader)#", "Optimizer.step#", "Optimizer.zero_grad#")
"""How the names of torch's own begin. Before there was a category for them, they were operators."""
