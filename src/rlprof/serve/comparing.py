"""Compares two runs of the folder, as `rlprof compare A B` does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rlprof.analysis.comparison import Comparison
from rlprof.analysis.differences import changes
from rlprof.analysis.facts import Facts, gather_facts
from rlprof.compare.paired import ALPHA_PER_LOOK
from rlprof.compare.separate_sessions import compare_separate, measure_session
from rlprof.errors import RlprofError
from rlprof.session.reader import Session


def compare_runs(a: Path, b: Path) -> Comparison:
    """Raises RlprofError if one of them cannot be read, or has no iterations."""
    if a == b:
        raise RlprofError("This compares a run with itself. Choose two different runs.")
    facts = [_facts(folder) for folder in (a, b)]
    measured = [measure_session(one, folder.name) for one, folder in zip(facts, (a, b))]
    found = compare_separate(a.name, b.name, measured[:1], measured[1:], ALPHA_PER_LOOK)
    return replace(found, changes=changes(facts[0].session, facts[1].session))


def _facts(folder: Path) -> Facts:
    with Session(folder) as session:
        return gather_facts(session)
