"""A DataLoader starts its worker processes again and again, or has workers for a dataset that is tiny."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import place_of
from rlprof.analysis.advice.lookup import CONSIDERABLE, ENOUGH_CALLS, fraction, number, outermost, ratio, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many
from rlprof.session.evidence import Loader

STARTING, LOADING = "loader_workers", "data_loading"

FEWEST = 3
"""Iterations over one kind of DataLoader. The first start of the workers is necessary."""

TINY = 20_000
"""Samples. A rollout or a small table is in memory already: a worker copies each batch through a pipe, which takes
longer than indexing it."""


def dataloader_restarts(facts: Facts) -> Finding | None:
    return _restarts(facts) or _tiny_dataset(facts)


def _tiny_dataset(facts: Facts) -> Finding | None:
    """Speaks if loading takes a tenth of the training time, by workers and from data that is small enough to index."""
    loading = facts.operation(LOADING)
    found = [loader for loader in facts.evidence.loaders if loader.workers and 0 < number(loader.dataset) <= TINY]
    if loading is None or not found:
        return None
    waits = [item for item in facts.operations if item.operation == "pipe_wait"]
    share = share_of(facts, [loading, *waits])
    if share < CONSIDERABLE or loading.calls < ENOUGH_CALLS:
        return None
    largest = max(found, key=lambda loader: loader.iterators)
    return Finding(
        rule="dataloader_workers",
        cause=f"A DataLoader uses {many(largest.workers, 'worker process')} for only {_samples(largest)}: "
        f"{as_percent(share)} of the training time.",
        place=place_of(facts, LOADING),
        operations=(LOADING,),
        evidence=(
            f"{count(loading.calls)} batches, each waited for {duration(ratio(loading.ledger_ns, loading.calls))}.",
            "A worker copies each batch through a pipe, which takes longer than indexing tensors that are in memory.",
        ),
        change=_change(largest, True),
        gain=gain_if(facts, {item.operation: Left(0.2, 0.03, 0.6) for item in (loading, *waits)}),
        check=compare_with_change(facts),
    )


def _restarts(facts: Facts) -> Finding | None:
    """Speaks if starting and stopping the workers, and waiting for their first batches, take a tenth of the training
    time. With a dataset so small that no workers are needed, waiting for any batch counts."""
    restarting = [loader for loader in facts.evidence.loaders if loader.workers and not loader.persistent]
    starting = facts.operation(STARTING)
    if not restarting or starting is None:
        return None
    worst = max(restarting, key=lambda loader: loader.iterators)
    loading = facts.operation(LOADING)
    waits = number(loading.ledger_ns) if loading is not None else 0.0
    # The first batch after each start waits for the workers. The others show how long a batch takes otherwise.
    usual = fraction(number(loading.p50_ns) * number(loading.calls), waits) if loading is not None else 1.0
    starts = outermost(facts.breakdown.rows, lambda row: row.operation == STARTING).total_ns
    tiny = worst.dataset is not None and worst.dataset <= TINY
    if tiny:
        usual = 0.0  # without workers, there is nothing to wait for
    share = fraction(starts + waits * (1 - usual), facts.breakdown.training_ns)
    if share < CONSIDERABLE or worst.iterators < FEWEST:
        return None
    left = {STARTING: Left(0.02, 0.0, 0.3)}
    if loading is not None:
        left[LOADING] = Left(0.1, 0.0, 0.6) if tiny else Left(usual, usual / 2, 1.0)
    each = f"The workers were started {count(worst.iterators)} times"
    return Finding(
        rule="dataloader_restarts",
        cause=f"A DataLoader starts {many(worst.workers, 'worker process')} anew for each pass over its data: "
        f"{as_percent(share)} of the training time.",
        place=place_of(facts, STARTING),
        operations=(STARTING, LOADING) if loading is not None else (STARTING,),
        evidence=(
            f"{each}, for {many(worst.loaders, 'DataLoader')} of {_samples(worst)} with num_workers={worst.workers}.",
            f"Starting and stopping them takes {duration(ratio(starts, worst.iterators))} per pass, "
            f"{duration(starts)} in all.",
        ),
        change=_change(worst, tiny),
        gain=gain_if(facts, left),
        check=compare_with_change(facts),
    )


def _samples(loader: Loader) -> str:
    return "an unknown number of samples" if loader.dataset is None else many(loader.dataset, "sample")


def _change(loader: Loader, tiny: bool) -> str:
    if tiny:
        return (
            f"The data is small: use `DataLoader(..., num_workers=0)`, or index the tensors directly, "
            f"`for rows in torch.randperm(len(data)).split({loader.batch or 64}): batch = data[rows]`."
        )
    change = f"Use `DataLoader(..., num_workers={loader.workers}, persistent_workers=True)`"
    if loader.loaders > 1:
        return f"Make the DataLoader once, before the loop. {change}."
    return f"{change}, so that the workers stay for the next pass."
