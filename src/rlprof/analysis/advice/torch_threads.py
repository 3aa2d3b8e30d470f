"""torch uses more threads than help: its operations are too small, or the cores are taken."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change, compare_with_variable
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lookup import computing, fraction, names_of, number, ratio, share_of
from rlprof.analysis.breakdown import UNATTRIBUTED
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many
from rlprof.analysis.operations import Operation
from rlprof.analysis.parallelism import OUTSIDE
from rlprof.analysis.topology import own
from rlprof.ledger.catalogue import PHASES

TORCH = ("policy", "teacher", "learning")

LARGE_SHARE = 0.20
"""Least share of the training time in torch's operations. With less, its threads do not matter."""

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


def torch_threads(facts: Facts) -> Finding | None:
    threads = number(facts.resources.torch_threads)
    torch = [operation for operation in facts.of_category(*TORCH) if operation.calls > 0]
    share = share_of(facts, torch)
    helpers = _helpers(facts)
    if threads <= 1 or share < LARGE_SHARE:
        return None
    small = share_of(facts, [operation for operation in torch if _typical(operation) < SMALL_NS])
    on_cpu = computing(torch)
    machine = number(facts.resources.machine_cpu_mean)
    waits = on_cpu is not None and on_cpu < HELD_UP
    too_many = waits and 0 < facts.session.cores < threads
    held_up = waits and machine >= CORES_TAKEN
    if not too_many and (helpers < HELPERS_AT_WORK or (small < 0.5 * share and not held_up)):
        return None
    cores = count(facts.session.cores)
    largest = max(torch, key=lambda operation: number(operation.ledger_ns))
    evidence = [
        f"torch uses {count(threads)} threads on {cores} cores, and its operations take {as_percent(share)} of the "
        "wall time.",
        f"{helpers:.2f} cores were busy outside of all spans: torch's helper threads, which also spin while they wait.",
        f"Half of the calls of {largest.operation} took less than {duration(number(largest.p50_ns))}; the fastest took "
        f"{duration(number(largest.min_ns))}.",
    ]
    if (held_up or too_many) and on_cpu is not None:
        evidence.append(
            f"torch's operations were on a CPU for {as_percent(on_cpu)} of their time, with the machine's cores "
            f"{as_percent(machine / 100)} busy: the threads wait for each other and for a core."
        )
    what = "tiny operations" if small >= 0.5 * share else "its operations"
    result = (
        f"but only {many(facts.session.cores, 'core')} may be used: they wait for each other"
        if too_many
        else f"and its waiting threads keep {helpers:.1f} more cores busy"
    )
    # A number that is not torch's own choice was set by the program, which a variable does not change.
    by_default = threads in (facts.session.cores, facts.session.machine_cores)
    return Finding(
        rule="torch_threads",
        cause=f"torch splits {what} over {count(threads)} threads, {result}.",
        place=None,
        operations=names_of(torch),
        evidence=tuple(evidence),
        change=f"{'Set OMP_NUM_THREADS=1, or call' if by_default else 'Call'} `torch.set_num_threads(1)` before "
        "training, and use the cores for environments or other runs.",
        gain=gain_if(facts, _left_with_fewer(facts, torch, on_cpu) if too_many and on_cpu else _left(torch)),
        check=compare_with_variable(facts, "OMP_NUM_THREADS=1") if by_default else compare_with_change(facts),
    )


def _helpers(facts: Facts) -> float:
    """Cores that computed outside of all spans, without the driver's own time outside of spans."""
    outside = sum(number(part.cpu_ns) for part in facts.parallelism.capacity or () if part.name == OUTSIDE)
    driver = sum(number(row.cpu_ns) for row in facts.breakdown.rows if row.category == UNATTRIBUTED)
    return ratio(outside - driver, facts.breakdown.training_ns)


def _typical(operation: Operation) -> float:
    """ns per call without what it called. The median if it calls little, as other programs distort a mean."""
    own = ratio(operation.self_ns, operation.calls)
    return min(own, operation.p50_ns) if operation.p50_ns is not None else own


def _left_with_fewer(facts: Facts, torch: list[Operation], on_cpu: float) -> dict[str, Left]:
    """With more threads than cores, each operation of torch waits for threads that have no core, in the user's own code
    too. Measured with 16 threads on 2 cores: 2.3 times as fast with one thread, where torch was on a CPU for half of
    its time."""
    phases = (own(row.operation) for row in facts.operations if row.operation in PHASES and row.ledger_ns > 0)
    names = [*(item.operation for item in torch if item.operation not in PHASES), *phases]
    return dict.fromkeys(names, Left(on_cpu, 0.5 * on_cpu, 0.98))


def _left(torch: list[Operation]) -> dict[str, Left]:
    """Between a call as fast as the operation's fastest and hardly any change. Without operations that mostly call
    others."""
    computing_itself = [operation for operation in torch if ratio(operation.self_ns, operation.busy_ns) > 0.5]
    fastest = {item.operation: fraction(item.min_ns, item.mean_ns) for item in computing_itself}
    return {name: Left((1 + least) / 2, least, 0.98) for name, least in fastest.items()}
