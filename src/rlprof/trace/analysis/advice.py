"""Advice on how to train faster: rules over the summary of a trace, the largest gain first."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.figures import as_percent, duration, many, size
from rlprof.trace.analysis.host import LOADS
from rlprof.trace.analysis.summary import DeviceTime, TraceSummary

ENVIRONMENT = ("env_step", "env_reset", "env_wait", "env_render", "rollout")

NOTABLE = 0.05
"""Fraction of the window: less time is not worth a change."""
TINY_OPERATOR = 10_000
"""Time of the host in ns: a shorter call is mostly the cost of calling."""

CHECK = "Capture the same steps again and compare with `rlprof trace diff BEFORE AFTER`."


def advise(summary: TraceSummary) -> list[Advice]:
    found = [advice for rule in RULES if (advice := rule(summary)) is not None]
    return sorted(found, key=lambda advice: -advice.most)


def waiting_for_data(summary: TraceSummary) -> Advice | None:
    waited = sum(phase.wall for phase in summary.phases if LOADS.search(phase.name))
    share = waited / summary.window if summary.window else 0.0
    if share < NOTABLE:
        return None
    evidence = [f"The host was waiting for the next batch for {duration(waited)}, {as_percent(share)} of the time."]
    device = _busiest(summary.devices)
    if device is not None and device.why_idle.data:
        evidence.append(f"{_device(device)} had nothing to do for {duration(device.why_idle.data)} of that.")
    return Advice(
        rule="waiting_for_data",
        title=f"{as_percent(share)} of the time is spent waiting for data.",
        operations=tuple(phase.name for phase in summary.phases if LOADS.search(phase.name)),
        evidence=tuple(evidence),
        action="Use worker processes in the DataLoader (num_workers, persistent_workers=True, pin_memory=True), or "
        "keep the data on the device and gather by index.",
        gain=(1.0, speedup(share, float("inf"))),
        check=CHECK,
    )


def waiting_for_environments(summary: TraceSummary) -> Advice | None:
    """A device that is idle while the host steps environments."""
    device = _busiest(summary.devices)
    if device is None or not summary.window:
        return None
    idle = {name: ns for name, ns in device.idle_in if name in ENVIRONMENT}
    share = sum(idle.values()) / summary.window
    if share < 2 * NOTABLE:
        return None
    worst = max(idle, key=lambda name: idle[name])
    return Advice(
        rule="waiting_for_environments",
        title=f"{_device(device)} is idle for {as_percent(share)} of the time while environments step.",
        operations=tuple(sorted(idle, key=lambda name: -idle[name])),
        evidence=(f"Most of it in {worst}: {duration(idle[worst])} of {duration(summary.window)}.",),
        action="Step more environments at once, in processes (AsyncVectorEnv, SubprocVecEnv) or on the device, or "
        "collect the next rollout while the last one is learned from.",
        gain=(1.0, speedup(share, float("inf"))),
        check=CHECK,
    )


def bound_by_launches(summary: TraceSummary) -> Advice | None:
    """The host cannot launch as fast as the device computes."""
    device, bound = _busiest(summary.devices), summary.launch_bound
    if device is None or bound is None or not summary.window:
        return None
    environment = sum(ns for name, ns in device.idle_in if name in ENVIRONMENT)
    idle = max(0, min(device.why_idle.host + device.why_idle.launching, device.idle - environment))
    share = idle / summary.window
    if share < 2 * NOTABLE or bound.bound < 0.2 * bound.kernels:
        return None
    return Advice(
        rule="bound_by_launches",
        title=f"{_device(device)} is idle for {as_percent(share)} of the time because the host launches kernels too "
        "slowly.",
        operations=tuple(name for name, _ in bound.names),
        evidence=(
            f"{bound.bound:,} of {bound.kernels:,} kernels found their device idle and took less time than the call "
            "that launched them.",
            f"The median kernel takes {duration(bound.kernel)}, the median launch {duration(bound.launch)}.",
        ),
        action='Use larger batches, and fewer and larger operators: torch.compile(mode="reduce-overhead"), CUDA '
        "graphs, fused optimizers (fused=True). Or keep a network this small on the CPU.",
        gain=(1.0, speedup(share, float("inf"))),
        check=CHECK,
    )


def synchronising(summary: TraceSummary) -> Advice | None:
    """`.item()`, `.cpu()` and similar calls inside the loop."""
    device = _busiest(summary.devices)
    if device is None or not summary.window or not summary.syncs:
        return None
    share = device.why_idle.sync / summary.window
    if share < NOTABLE:
        return None
    worst = summary.syncs[:3]
    steps = max(1, len(summary.steps))
    return Advice(
        rule="synchronising",
        title=f"{_device(device)} is idle for {as_percent(share)} of the time because the host waits for its results.",
        operations=tuple(dict.fromkeys(sync.operator or sync.call for sync in worst)),
        evidence=tuple(
            f"{sync.call} in {sync.operator or 'no operator'}"
            f"{f' from {sync.function}' if sync.function else f' in {sync.phase}' if sync.phase else ''}: "
            f"{many(sync.calls / steps, 'call')} and {duration(sync.waited / steps)} per step."
            for sync in worst
        ),
        action="Keep metrics on the device until the end of an epoch and read them together. Replace `.item()` and "
        "`.cpu()` in the loop. Copy with non_blocking=True from and to pinned memory.",
        gain=(1.0, speedup(share, float("inf"))),
        check=CHECK,
    )


def pageable_copies(summary: TraceSummary) -> Advice | None:
    slow = [copies for copies in summary.copies if "Pageable" in copies.name]
    total = sum(copies.total for copies in slow)
    share = total / summary.window if summary.window else 0.0
    if share < NOTABLE:
        return None
    return Advice(
        rule="pageable_copies",
        title=f"Copies from or to pageable memory take {as_percent(share)} of the time.",
        operations=tuple(copies.name for copies in slow),
        evidence=tuple(
            f"{copies.name}: {many(copies.calls, 'copy')}, {duration(copies.total)}"
            + (f", {size(copies.bytes)} at {size(copies.rate)}/s." if copies.bytes and copies.rate else ".")
            for copies in slow
        ),
        action="Pin the memory (pin_memory=True in the DataLoader, torch.empty(..., pin_memory=True) for rollouts) and "
        "copy with non_blocking=True.",
        gain=(1.0, speedup(share, float("inf"))),
        check=CHECK,
    )


def many_small_copies(summary: TraceSummary) -> Advice | None:
    """One value at a time, between host and device."""
    across = [copies for copies in summary.copies if "host" in copies.direction]
    small, calls = sum(copies.small for copies in across), sum(copies.calls for copies in across)
    steps = max(1, len(summary.steps))
    if small / steps < 100 or small < 0.5 * calls:
        return None
    return Advice(
        rule="many_small_copies",
        title=f"{many(small / steps, 'copy')} of up to 4 KB per step go between host and device.",
        operations=tuple(copies.name for copies in across),
        evidence=tuple(f"{copies.name}: {copies.small:,} of {copies.calls:,} are up to 4 KB." for copies in across),
        action="Collect the values in one tensor and copy that: the observations of all environments, the rewards of a "
        "whole rollout.",
        gain=None,
        check=CHECK,
    )


def tiny_operators(summary: TraceSummary) -> Advice | None:
    """Operators on the CPU that are too small."""
    total = sum(operator.total for operator in summary.operators)
    tiny = [item for item in summary.operators if item.calls and item.total / item.calls < TINY_OPERATOR]
    spent = sum(item.total for item in tiny)
    if summary.devices or not summary.window or spent < 0.5 * total or spent < 0.25 * summary.window:
        return None
    calls, steps = sum(item.calls for item in tiny), max(1, len(summary.steps))
    share = spent / summary.window
    return Advice(
        rule="tiny_operators",
        title=f"{as_percent(share)} of the time is spent in operators of less than {duration(TINY_OPERATOR)} per call.",
        operations=tuple(item.name for item in tiny[:5]),
        evidence=(f"{many(calls / steps, 'call')} per step, {duration(spent / calls)} each.",),
        action="Use larger minibatches, more environments per forward pass, torch.compile, foreach or fused "
        "optimizers, and vectorize loops over time steps.",
        gain=(1.0, speedup(share, 2.0)),
        check=CHECK,
    )


RULES: tuple[Callable[[TraceSummary], Advice | None], ...] = (
    waiting_for_data,
    waiting_for_environments,
    bound_by_launches,
    synchronising,
    pageable_copies,
    many_small_copies,
    tiny_operators,
)


def _busiest(devices: Iterable[DeviceTime]) -> DeviceTime | None:
    """The device with the most work."""
    return max(devices, key=lambda device: device.busy, default=None)


def _device(device: DeviceTime) -> str:
    return f"GPU {device.number}"
