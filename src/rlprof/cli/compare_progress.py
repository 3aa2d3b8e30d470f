"""A comparison on a terminal: what it will cost, how far it is, and the interval so far."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rlprof.analysis.comparison import Comparison
from rlprof.analysis.figures import duration
from rlprof.cli.output import say
from rlprof.cli.signals import ends_well
from rlprof.compare.paired import Plan, State, compare_live
from rlprof.compare.text import said


def run_comparison(plan: Plan, component_of: Callable[[str], str]) -> Comparison:
    """With progress on the standard error."""
    most = duration(plan.seconds * 1e9)
    narrow = f", or until the interval is within ±{100 * plan.width:g} %" if plan.width else ""
    say(
        f"up to {plan.pairs} pairs of processes, each at least {plan.blocks} iterations of both arms;"
        f" at most {most}{narrow}\n"
    )
    with ends_well():
        try:
            return compare_live(plan, component_of, _progress(plan))
        finally:
            say("\n")


def run_against_itself(plan: Plan) -> tuple[float, ...]:
    """The log of each pair's ratio."""
    return run_comparison(plan, lambda _: "all of it").logs


def _progress(plan: Plan) -> Callable[[State], None]:
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    told = 0

    def tell(state: State) -> None:
        nonlocal told
        doing = f"iteration {state.block}" if state.block else "starting both arms"
        so_far = f"; so far B is {said(state.so_far.speedup)}" if state.so_far is not None else ""
        left = f"; at most {duration(state.seconds_left * 1e9)} more" if state.seconds_left is not None else ""
        if on_terminal:
            say(f"\r\x1b[2Kpair {state.pair} of {plan.pairs}, {doing}{so_far}{left}")
        elif state.pair > told:  # a line a pair is enough for a file
            told = state.pair
            say(f"pair {state.pair} of {plan.pairs}{so_far}{left}\n")

    return tell
