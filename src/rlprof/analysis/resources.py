"""What did the training use? CPU, memory and GPU of the process and its children, over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from rlprof.analysis.training import Training
from rlprof.ledger.catalogue import STARTUP
from rlprof.ledger.snapshot import Snapshot
from rlprof.session.reader import Session
from rlprof.session.records import Sample

POINTS = 400
SECOND = 1_000_000_000
"""About the time between two samples."""
_RATES = ("cpu", "children_cpu", "machine_cpu", "held_up", "device_busy")
_SIZES = ("rss", "allocated", "children_rss", "children", "device_memory")


@dataclass(frozen=True, slots=True)
class Samples:
    """Columns of equal length. CPU in percent of one core (the machine's: of all cores), memory in bytes."""

    time_ns: tuple[int, ...]
    cpu: tuple[float | None, ...]
    children_cpu: tuple[float | None, ...]
    machine_cpu: tuple[float | None, ...]
    held_up: tuple[float | None, ...]
    """Percent of the time that the main thread was ready to run but had no core."""
    rss: tuple[int | None, ...]
    allocated: tuple[int | None, ...]
    """Memory of the process's own, used or not."""
    children_rss: tuple[int | None, ...]
    machine_available: tuple[int | None, ...]
    """Memory that was still available to programs."""
    device_busy: tuple[float | None, ...]
    device_memory: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Resources:
    """Means over the training, and peaks. None means not measured."""

    seconds: float
    """Time covered by the samples."""
    cpu_mean: float | None
    """In percent of one core."""
    children_cpu_mean: float | None
    machine_cpu_mean: float | None
    held_up_mean: float | None
    rss_peak: int | None
    """The highest value that the kernel has seen, also between samples."""
    children_rss_peak: int | None
    """The highest sum over all children in one sample."""
    children_most: int
    device_busy_mean: float | None
    device_memory_peak: int | None
    unseen_cpu_ns: int
    """CPU time of threads without spans, only while the driver waited if that is known."""
    torch_threads: int | None
    sampling_share: float | None
    """In percent of one core; so is `flushing_share`, the cost of writing the session."""
    flushing_share: float | None
    samples: Samples


def resources(session: Session, training: Training) -> Resources:
    everything = session.samples()
    samples = _during(everything, session, training)
    snapshot, state = training.snapshot, session.state
    seconds = sum(sample.weight for sample in samples) / 1e9
    wall = snapshot.wall_ns + sum(part.ns for part in training.outside)
    return Resources(
        seconds=seconds,
        **{f"{name}_mean": mean_of(samples, name) for name in _RATES},
        rss_peak=snapshot.process_peak or peak_of(everything, "rss"),
        children_rss_peak=peak_of(samples, "children_rss"),
        children_most=peak_of(samples, "children") or 0,
        device_memory_peak=peak_of(samples, "device_memory"),
        unseen_cpu_ns=_unseen(state.wait_cpu_ns if state else 0, mean_of(samples, "cpu"), snapshot),
        torch_threads=state.torch_threads if state else None,
        sampling_share=100 * sum(sample.cost for sample in everything) / wall if wall and everything else None,
        flushing_share=100 * state.writer_cpu_ns / wall if state and wall else None,
        samples=_columns(list(_fewer(samples)), session.info.origin),
    )


def _during(samples: Sequence[Sample], session: Session, training: Training) -> list[Sample]:
    """Samples of the training: what a program uses while it starts or exits says nothing about it. A sample covers the
    time before it. Of a run without any training, all are kept."""
    before = next((part.ns for part in training.outside if part.name == STARTUP), 0)
    begin, end = session.info.origin + before, session.state.time - session.state.after_ns if session.state else 0
    found = [sample for sample in samples if begin <= sample.time - sample.weight // 2 and sample.time <= end + SECOND]
    return found or list(samples)


def _unseen(wait_cpu_ns: int, cpu_mean: float | None, snapshot: Snapshot) -> int:
    """CPU time of the process without the lanes' CPU time. If no probe saw the waits, this covers the whole run and so
    includes threads that compute for the driver's own spans, such as torch's."""
    here = {lane.id: lane.on_driver for lane in snapshot.lanes if lane.kind != "process"}
    used = wait_cpu_ns or round((cpu_mean or 0.0) / 100 * snapshot.wall_ns)
    lanes = [node for node in snapshot.net_nodes if node.lane in here and not (wait_cpu_ns and here[node.lane])]
    return max(0, used - sum(node.cpu_ns or 0 for node in lanes))


def mean_of(samples: Sequence[Sample], name: str) -> float | None:
    """Mean of a figure, weighted by the time of each sample. None if no sample has it."""
    known = [(getattr(sample, name), sample.weight) for sample in samples if getattr(sample, name) is not None]
    weight = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / weight if weight else None


def peak_of(samples: Sequence[Sample], name: str) -> int | None:
    return max((value for sample in samples if (value := getattr(sample, name)) is not None), default=None)


def _fewer(samples: Sequence[Sample]) -> Iterator[Sample]:
    """At most POINTS samples. Neighbours are merged: rates are averaged, sizes are the largest."""
    size = max(1, -(-len(samples) // POINTS))
    for start in range(0, len(samples), size):
        group = samples[start : start + size]
        rates: dict[str, Any] = {name: mean_of(group, name) for name in _RATES}
        sizes: dict[str, Any] = {name: peak_of(group, name) for name in _SIZES}
        sums: dict[str, Any] = {name: sum(getattr(sample, name) for sample in group) for name in ("weight", "cost")}
        yield replace(group[-1], **rates, **sizes, **sums)


def _columns(samples: Sequence[Sample], origin: int) -> Samples:
    names = [field.name for field in fields(Samples) if field.name != "time_ns"]
    columns = {name: tuple(getattr(sample, name) for sample in samples) for name in names}
    return Samples(time_ns=tuple(sample.time - origin for sample in samples), **columns)
