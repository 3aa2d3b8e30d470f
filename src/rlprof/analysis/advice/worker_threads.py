"""torch in worker processes uses so many threads that the processes take the cores from one another."""

from __future__ import annotations

from statistics import median

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lookup import CONSIDERABLE, computing, fraction, number, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.ledger.catalogue import PHASES

FEWEST_WORKERS = 2

HELPERS = 0.10
"""Least part of the workers' CPU time in threads other than their main threads. It is below 0.02 with one thread per
process: rlprof's own thread."""


def worker_threads(facts: Facts) -> Finding | None:
    """Speaks if torch's threads in all workers are more than the cores, and take a tenth of the workers' CPU time."""
    workers = [worker for worker in facts.evidence.workers if (worker.torch_threads or 0) > 1]
    if len(workers) < FEWEST_WORKERS:
        return None
    threads = int(median(number(worker.torch_threads) for worker in workers))
    cores = facts.session.cores
    helpers = sum(number(worker.helpers_cpu_ns) for worker in workers)
    busy = sum(number(worker.cpu_ns) for worker in workers)
    wasted = fraction(helpers, busy)
    there = [
        operation
        for operation in facts.operations
        if operation.operation not in PHASES and any(lane.kind == "process" for lane in operation.lanes)
    ]
    share = share_of(facts, there)
    if threads * len(workers) <= cores or wasted < HELPERS or share < CONSIDERABLE:
        return None
    # Helpers that spin take cores from the other workers; what they compute, the main threads must compute instead.
    # A main thread that is off the CPU waits for its helpers, which wait for a core.
    on_cpu = computing(there)
    least = min(max(0.05, 1 - 2 * wasted), 1.0 if on_cpu is None else max(0.05, on_cpu))
    left = Left(min(1 - 0.6 * wasted, (1 + 3 * least) / 4), least, 0.95)
    return Finding(
        rule="worker_threads",
        cause=f"torch uses {count(threads)} threads in each of {count(len(workers))} worker processes, on "
        f"{count(cores)} cores.",
        place=None,
        operations=tuple(operation.operation for operation in there[:3]),
        evidence=(
            f"{count(len(workers))} workers with {count(threads)} threads each are {count(threads * len(workers))} "
            f"threads for {count(cores)} cores.",
            f"Threads beside the main thread used {duration(helpers)} of the workers' {duration(busy)} of CPU time, "
            f"{as_percent(wasted)}.",
            f"What the workers do takes {as_percent(share)} of the training time.",
        ),
        change="Call `torch.set_num_threads(1)` at the start of the function that makes the environment, which runs in "
        "the worker. Or set `OMP_NUM_THREADS=1` for the whole program, and `torch.set_num_threads(N)` in the driver.",
        gain=gain_if(facts, {operation.operation: left for operation in there}),
        check=compare_with_change(facts),
    )
