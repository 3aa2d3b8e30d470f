"""The findings and measurements of a machine as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from rich.console import Console
from rich.text import Text

from rlprof.analysis.figures import duration, many, percent, size
from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.machine.torch import Compute, Threading
from rlprof.doctor.rules.finding import BAD, Finding
from rlprof.render.layout import plain
from rlprof.render.names import literal

_WIDEST = 100
"""Most columns: longer lines are hard to read."""
_NARROWEST = 10
_INDENT = 6
_NOT_MEASURED = "not measured"
_EXTRAS = {"matplotlib": "report", "tensorboard": "tensorboard"}
"""The extra of rlprof that installs a library."""


def to_text(machine: Machine, findings: Sequence[Finding], width: int = 80) -> str:
    """The same as `render`, as a string without colour or trailing spaces."""
    return plain(partial(render, machine, findings), width)


def render(machine: Machine, findings: Sequence[Finding], console: Console) -> None:
    """The verdict, each finding with its fix, and what was measured."""
    page = _Page(console)
    page.add((_verdict(machine, findings), "bold"))
    for finding in findings:
        console.print()
        margin = Text(finding.severity, style="bold red" if finding.severity == BAD else "bold yellow")
        page.add((finding.what, "bold"), margin=margin, indent=_INDENT)
        page.add((finding.why, ""), indent=_INDENT)
        page.add(("Fix: ", "bold"), (finding.fix, "green"), indent=_INDENT)
    console.print()
    rows = [*_rows(machine)]
    indent = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        page.add((value, ""), margin=Text(name, style="cyan"), indent=indent)


class _Page:
    """Lines with a margin and without trailing spaces, so that commands can be copied."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._ascii = console.options.ascii_only
        self._width = min(console.width, _WIDEST)

    def add(self, *parts: tuple[str, str], margin: Text | None = None, indent: int = 0) -> None:
        """Add text with its style beside a margin, and wrap it below the first line."""
        body = Text.assemble(*((literal(text, self._ascii), style) for text, style in parts))
        before = margin or Text()
        for line in body.wrap(self._console, max(_NARROWEST, self._width - indent), overflow="fold"):
            before.truncate(indent, pad=True)
            line.rstrip()
            self._console.print(Text.assemble(before, line), no_wrap=True, overflow="ignore", crop=False)
            before = Text()


def _verdict(machine: Machine, findings: Sequence[Finding]) -> str:
    bad = sum(finding.severity == BAD for finding in findings)
    counts = ((bad, "problem"), (len(findings) - bad, "hint"))
    found = [many(count, what) for count, what in counts if count]
    skipped = " --quick skipped torch and starting processes." if machine.quick else ""
    return f"{' and '.join(found) or 'No problems'} found.{skipped}"


def _rows(machine: Machine) -> Iterator[tuple[str, str]]:
    cores, memory, software, steady = machine.cores, machine.memory, machine.software, machine.steadiness
    yield "cores", _cores(machine)
    busy = "unknown share" if cores.busy_share is None else f"{cores.busy_share:.0%}"
    load = "" if cores.load_1m is None else f", load {cores.load_1m:.2f}"
    stolen = f", {cores.stolen_share:.0%} stolen" if cores.stolen_share else ""
    yield "other programs", f"{busy} of the cores busy{load}{stolen}"
    yield (
        "steadiness",
        f"work of {duration(steady.median_ns)}: 95% within {duration(steady.p95_ns)}, worst"
        f" {duration(steady.worst_ns)}, {percent(100 * steady.off_cpu_share)} off CPU",
    )
    yield "memory", _memory(machine)
    speed = machine.copy_bytes_per_s
    yield "memory copy", _NOT_MEASURED if speed is None else f"{speed / 1e9:.1f} GB/s, one thread"
    if memory.shm_total is not None:
        yield "/dev/shm", f"{size(memory.shm_total)}, {size(memory.shm_free or 0)} free"
    yield "disk", _disk(machine)
    yield "processes", _processes(machine)
    clock = machine.clock
    core = "C core" if clock.core == "c" else "Python twin"
    cost = f"{duration(clock.span_ns)} +- {duration(max(1, clock.span_uncertainty_ns))}"
    yield "span cost", f"{cost} ({core}, clock {clock.clock}, CPU time {clock.cpu})"
    yield "clock", f"{duration(clock.pair_ns)} for two readings of perf_counter_ns"
    yield from _compute(machine)
    yield "GPU", "; ".join(gpu.name for gpu in software.gpus) or "none found"
    yield "system", f"{software.system}, SQLite {software.sqlite}"
    yield "Python", _python(machine)
    missing = [f"{name} (rlprof[{extra}])" for name, extra in _EXTRAS.items() if software.libraries.get(name) is None]
    if missing:
        yield "not installed", ", ".join(missing)
    yield "measured in", duration(machine.took_ns)


def _cores(machine: Machine) -> str:
    cores = machine.cores
    parts = [f"{cores.logical} logical, {cores.usable:g} usable"]
    if cores.quota is not None:
        parts.append(f"quota {cores.quota:g}")
    if cores.governors:
        parts.append(f"governor {' and '.join(cores.governors)} ({cores.frequency_driver or 'driver unknown'})")
    return ", ".join(parts)


def _memory(machine: Machine) -> str:
    memory = machine.memory
    limit = "" if memory.limit is None else f", limited to {size(memory.limit)}"
    swap = f"swap {size(memory.swap_used)} of {size(memory.swap_total)}" if memory.swap_total else "no swap"
    return f"{size(memory.total)}{limit}, {size(memory.available)} available, {swap}"


def _disk(machine: Machine) -> str:
    disk = machine.disk
    parts = ["current folder" if disk.folder == "." else disk.folder, disk.filesystem or "unknown file system"]
    if disk.free is not None:
        parts.append(f"{size(disk.free)} free")
    if disk.fsync_ns is None or disk.fsync_worst_ns is None:
        parts.append("cannot be written to")
    else:
        parts.append(f"fsync {duration(disk.fsync_ns)} (worst {duration(disk.fsync_worst_ns)})")
    return ", ".join(parts)


def _processes(machine: Machine) -> str:
    processes = machine.processes
    if processes is None:
        return _NOT_MEASURED
    return f"{_time(processes.spawn_ns)} to start Python, {_time(processes.fork_ns)} to fork"


def _compute(machine: Machine) -> Iterator[tuple[str, str]]:
    compute = machine.compute
    if compute is None:
        yield "torch", _NOT_MEASURED
        return
    parts = [compute.version]
    if compute.threads is not None:
        parts += [many(compute.threads, "thread"), f"{compute.interop_threads} interop"]
    parts += [f"{name}={value}" for name, value in machine.software.thread_settings.items() if value is not None]
    if compute.import_ns is not None:
        parts.append(f"import {duration(compute.import_ns)}")
    yield compute.library, ", ".join(parts)
    for name, what, case in _cases(compute):
        if case is not None:
            yield name, f"{what}: {_threads(case, compute)}"


def _cases(compute: Compute) -> tuple[tuple[str, str, Threading | None], ...]:
    flops = compute.matrix_flops
    rate = "" if flops is None else f", {flops / 1e9:.0f} GFLOP/s"
    return (
        ("  matrix", f"512 x 512{rate}", compute.matrix),
        ("  acting", "64 x 64 policy, batch 8", compute.acting),
        ("  learning", "64 x 64 network, batch 1024", compute.learning),
        ("  crowded", "learning, every core busy", compute.crowded),
    )


def _threads(case: Threading, compute: Compute) -> str:
    if case.one_ns is None or case.all_ns is None:
        return _time(case.one_ns or case.all_ns)
    return f"1 thread {duration(case.one_ns)}, {compute.threads} threads {duration(case.all_ns)}"


def _python(machine: Machine) -> str:
    python = machine.software.python
    parts = [f"{python.implementation} {python.version}"]
    parts += ["debug build"] if python.debug else []
    parts += ["free-threaded"] if python.free_threaded else []
    if python.optimized is not None:
        parts.append("optimized build" if python.optimized else "not an optimized build")
    return ", ".join(parts)


def _time(ns: float | None) -> str:
    return _NOT_MEASURED if ns is None else duration(ns)
