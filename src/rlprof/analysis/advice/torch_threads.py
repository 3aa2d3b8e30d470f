"""torch uses more threads than help: its operations are too small, or the cores are taken."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.lookup import computing, fraction, names_of, number, ratio, share_of
from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.analysis.operations import Operation
from rlprof.analysis.parallelism import OUTSIDE

TORCH = ("policy", "teacher", "learning")

LARGE_SHARE = 0.20
"""Least share of the wall time in torch's operations. With less, its threads do not matter."""

SMALL_NS = 500_000
"""A 2 x 64 MLP with Adam, 2 threads against 1 on 2 free cores: with 256 rows (operations of 0.06 to 0.4 ms) 13 % fewer
steps per second at twice the CPU time; with 512 rows (0.5 to 0.7 ms) 14 % more; a 2 x 512 MLP (10 ms) 60 % more."""

HELPERS_AT_WORK = 0.25
"""Cores that computed outside of all spans: torch's helpers spin while they wait. 1.0 with 2 threads, 0.0 with 1."""

CORES_TAKEN = 90.0
"""Least CPU use of the whole machine, in percent."""
HELD_UP = 0.75
"""Highest fraction of their time that torch's operations were on a CPU. When other processes wanted the 2 cores, 2
threads waited for each other in each operation: 50 % on a CPU, and 91 steps per second where 1 thread did 12,272."""


def torch_threads(facts: Facts) -> Advice | None:
    threads = number(facts.resources.torch_threads)
    torch = [operation for operation in facts.of_category(*TORCH) if operation.calls > 0]
    share = share_of(facts, torch)
    helpers = _helpers(facts)
    if threads <= 1 or share < LARGE_SHARE or helpers < HELPERS_AT_WORK:
        return None
    small = share_of(facts, [operation for operation in torch if _typical(operation) < SMALL_NS])
    on_cpu = computing(torch)
    machine = number(facts.resources.machine_cpu_mean)
    held_up = on_cpu is not None and on_cpu < HELD_UP and machine >= CORES_TAKEN
    if small < 0.5 * share and not held_up:
        return None
    cores = count(facts.session.cores)
    largest = max(torch, key=lambda operation: number(operation.ledger_ns))
    evidence = [
        f"torch uses {count(threads)} threads on {cores} cores, and its operations take {as_percent(share)} of the "
        "wall time.",
        f"{helpers:.2f} cores were busy outside of all spans: torch's helper threads spin while they wait for work.",
        f"Half of the calls of {largest.operation} took less than {duration(number(largest.p50_ns))}; the fastest took "
        f"{duration(number(largest.min_ns))}.",
    ]
    if held_up and on_cpu is not None:
        evidence.append(
            f"torch's operations were on a CPU for {as_percent(on_cpu)} of their time, with the machine's cores "
            f"{as_percent(machine / 100)} busy: the threads wait for each other and for a core."
        )
    return Advice(
        rule="torch_threads",
        title=f"torch splits {'its operations' if held_up else 'tiny operations'} over {count(threads)} threads. "
        f"{helpers:.1f} more cores are busy with waiting.",
        operations=names_of(torch),
        evidence=tuple(evidence),
        action="Set OMP_NUM_THREADS=1, or call torch.set_num_threads(1) before training, and use the cores for "
        "environments or other runs.",
        gain=(1.0, _most(facts, torch)),
        check="Run again with OMP_NUM_THREADS=1 and compare steps per second in `rlprof report` of the two sessions.",
    )


def _helpers(facts: Facts) -> float:
    """Cores that computed outside of all spans, without the driver's own time outside of spans."""
    outside = sum(number(part.cpu_ns) for part in facts.parallelism.capacity or () if part.name == OUTSIDE)
    driver = sum(number(row.cpu_ns) for row in facts.breakdown.rows if row.category == UNATTRIBUTED)
    return ratio(outside - driver, facts.breakdown.wall_ns)


def _typical(operation: Operation) -> float:
    """ns per call without what it called. The median if it calls little, as other programs distort a mean."""
    own = ratio(operation.self_ns, operation.calls)
    return min(own, operation.p50_ns) if operation.p50_ns is not None else own


def _most(facts: Facts, torch: list[Operation]) -> float:
    """The gain if each call were as fast as its operation's fastest, without operations that mostly call others."""
    own = [operation for operation in torch if ratio(operation.self_ns, operation.busy_ns) > 0.5]
    spared = sum(number(item.ledger_ns) * (1 - fraction(item.min_ns, item.mean_ns)) for item in own)
    return speedup(fraction(spared, facts.breakdown.wall_ns), float("inf"))
