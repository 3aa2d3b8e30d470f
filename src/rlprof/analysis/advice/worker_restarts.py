"""Worker processes or threads are started again and again while the training runs."""

from __future__ import annotations

import re

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left
from rlprof.analysis.advice.lines import Match, beside_networks, function_of, gain_of, hottest_function, shown_function
from rlprof.analysis.advice.lookup import CONSIDERABLE
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent

STARTS = re.compile(
    r"\b(?:Pool|ThreadPool|ProcessPoolExecutor|ThreadPoolExecutor|Process|Thread|AsyncVectorEnv|SubprocVecEnv)\(|"
    r"(?<![\w.])\w+\.start\(\)"
)
ENDS = re.compile(r"\.(?:join|shutdown|terminate|close)\(\)")
MOST_OF_IT = 0.3
"""Least part of the time in the lines that start workers. To wait for their work takes time in the other lines, too."""


def worker_restarts(facts: Facts) -> Finding | None:
    """Speaks if lines that start workers, and those of the same function that end them, take a tenth of the time."""
    lines = beside_networks(facts)
    started = hottest_function(hot for hot in lines if STARTS.search(hot.line.source))
    if started is None:
        return None
    function = started.place.file, function_of(started.place)
    ended = [hot for hot in lines if (hot.line.file, function_of(hot.line)) == function and _only_ends(hot.line.source)]
    found = Match((*started.lines, *ended), started.share + sum(hot.line.share for hot in ended))
    if found.share < CONSIDERABLE or started.share < MOST_OF_IT * found.share or not found.is_sure:
        return None
    place = started.place
    return Finding(
        rule="worker_restarts",
        cause=f"{place.where} in {shown_function(place)} starts worker processes or threads again and again. To start "
        f"and end them takes {as_percent(found.share)} of the training time.",
        place=place,
        operations=(),
        evidence=found.evidence(),
        change="Start them once before the loop, and keep them: `pool = multiprocessing.Pool(2)` before the loop, "
        "`pool.map(...)` in it, and `pool.close()` after it.",
        gain=gain_of(facts, found, Left(0.1, 0.0, 0.5)),
        check=compare_with_change(facts),
    )


def _only_ends(source: str) -> bool:
    return ENDS.search(source) is not None and STARTS.search(source) is None
