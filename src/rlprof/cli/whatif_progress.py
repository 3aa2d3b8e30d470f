"""An experiment on a terminal: what it will cost, how far it is, and what it says so far."""

from __future__ import annotations

import sys

from rlprof.analysis.figures import duration
from rlprof.analysis.slowdown import DOSES, Experiment
from rlprof.cli.output import say
from rlprof.cli.signals import ends_well
from rlprof.compare.text import shown
from rlprof.experiment.slowdowns import LEAST_BLOCKS, SlowdownPlan, SlowdownProgress, run_slowdowns


def run_experiment(plan: SlowdownPlan, iteration_ns: float) -> dict[str, Experiment]:
    """With progress on the standard error."""
    turns = (2 + len(DOSES)) * len(plan.operations) * (plan.settle + plan.counted)
    least = duration(LEAST_BLOCKS * turns * 1.3 * iteration_ns)
    say(
        f"rlprof {plan.command}, again, with {', '.join(plan.operations)} slowed down by 50 and 100 %: about {least}"
        f" and its start at least, {duration(plan.seconds * 1e9)} at most\n"
    )
    with ends_well():
        try:
            return run_slowdowns(plan, _tell)
        finally:
            say("\n")


def _tell(state: SlowdownProgress) -> None:
    found = [f"{name} costs {shown(one.cost)}" for name, one in state.so_far.items() if one.cost is not None]
    if sys.stderr is not None and sys.stderr.isatty():
        doing = f"block {state.block}" if state.block else "starting"
        so_far = f"; {', '.join(found)}" if found else ""
        say(f"\r\x1b[2Kprocess {state.process}, {doing}{so_far}; at most {duration(state.seconds_left * 1e9)} more")
    elif not state.block:
        say(f"process {state.process}{'; so far ' if found else ''}{', '.join(found)}\n")
