"""What to change next: one rule a file. A rule looks at facts and names its evidence; without it, it is silent."""

from __future__ import annotations

from collections.abc import Callable

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.facts import Facts

Rule = Callable[[Facts], Advice | None]

RULES: tuple[Rule, ...] = ()


def advise(facts: Facts) -> tuple[Advice, ...]:
    """What the rules say, the largest possible gain first."""
    said = [advice for rule in RULES if (advice := rule(facts)) is not None]
    return tuple(sorted(said, key=lambda advice: -advice.most))
