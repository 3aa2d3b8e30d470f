"""Modules are imported while the training runs: again and again, or so late that the loop waits for them."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.lines import sampled_gain, shortened
from rlprof.analysis.advice.lookup import CONSIDERABLE, fraction, number
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, duration


def import_in_loop(facts: Facts) -> Finding | None:
    """Speaks if a tenth of the training time is spent inside of Python's import system, called from the user's code."""
    lines = facts.code.imports
    spent = sum(number(line.ns) for line in lines)
    share = fraction(spent, facts.breakdown.training_ns)
    if not lines or share < CONSIDERABLE:
        return None
    place = lines[0]
    return Finding(
        rule="import_in_loop",
        cause=f"{place.where} imports a module inside the training loop: {as_percent(share)} of the training time.",
        place=place,
        operations=(),
        evidence=tuple(
            f"{line.where} `{shortened(line.source)}`: {duration(line.ns)} inside of the import system."
            for line in lines[:3]
        ),
        change="Move the import to the top of the file. Do not reload modules or clear `sys.modules` while training.",
        gain=sampled_gain(facts, share),
        check=compare_with_change(facts),
    )
