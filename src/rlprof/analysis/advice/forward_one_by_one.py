"""A network is called for one row at a time inside an update, where one call could take the whole batch."""

from __future__ import annotations

import re

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import ENOUGH_SAMPLES, SAMPLE_NS, beside, place_of, shortened, shown_function
from rlprof.analysis.advice.lookup import CONSIDERABLE, ENOUGH_CALLS, fraction, number, ratio, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.analysis.operations import Operation
from rlprof.analysis.topology import own

FORWARD = "loss_forward"
MANY = 16
"""Forward passes per optimizer step. Actors, critics and their targets are below ten."""
SHORT_NS = 1_000_000
"""A longer call computes a batch."""

RECURRENT = re.compile(r"torch\.nn\.modules\.rnn:")
WHOLE_SEQUENCE = (
    "A recurrent network takes a whole sequence in one call: `outputs, state = lstm(sequence, state)`. Split it where "
    "episodes end."
)
BACKWARD = Left(0.4, 0.1, 1.0)
"""What is left of the backward pass, if it goes back through these calls."""
LONG_BACKWARD = 0.8
"""Least time of the backward passes, relative to the forward passes. If they are shorter, they do not go back through
them."""


def forwards_per_step(facts: Facts) -> float:
    """Forward passes that learn, per optimizer step. 0 without optimizer steps."""
    forward, steps = facts.operation(FORWARD), facts.operation("optimizer_step")
    return ratio(forward.calls, steps.calls) if forward is not None and steps is not None else 0.0


def forward_one_by_one(facts: Facts) -> Finding | None:
    """Speaks if there are 16 or more short forward passes per optimizer step, and they take a tenth of the time."""
    forward, steps = facts.operation(FORWARD), facts.operation("optimizer_step")
    if forward is None or steps is None or steps.calls < 1 or forward.calls < ENOUGH_CALLS:
        return None
    each, share = forwards_per_step(facts), share_of(facts, [forward])
    if each < MANY or share < CONSIDERABLE or number(forward.p50_ns) > SHORT_NS:
        return _step_by_step(facts, forward)
    place = place_of(facts, FORWARD)
    where = f" at {place.where}" if place is not None else ""
    back = _goes_back(facts, forward)
    return Finding(
        rule="forward_one_by_one",
        cause=f"A network is called {count(round(each))} times per optimizer step{where}, for few rows each: "
        f"{as_percent(share)} of the training time{_and_back(facts, back)}.",
        place=place,
        operations=(FORWARD,),
        evidence=(
            f"{count(forward.calls)} forward passes for {count(steps.calls)} optimizer steps.",
            f"Half of them took less than {duration(number(forward.p50_ns))}, which is mostly the cost of a call.",
        ),
        change="Call the network once for the whole batch: `outputs = network(torch.stack(rows))` instead of "
        f"`network(row)` for each row. {WHOLE_SEQUENCE}",
        gain=gain_if(facts, {FORWARD: Left(0.2, 0.05, 0.5), **back, **_around(facts)}),
        check=compare_with_change(facts),
    )


def _step_by_step(facts: Facts, forward: Operation) -> Finding | None:
    """A module whose forward pass calls a recurrent layer in a loop over time."""
    lines = [line for line in facts.code.within(FORWARD) if line.loop and any(map(RECURRENT.match, line.below))]
    spent = sum(number(line.ns) for line in lines)
    share = fraction(spent, facts.breakdown.training_ns)
    if share < CONSIDERABLE or spent < ENOUGH_SAMPLES * SAMPLE_NS:
        return None
    place, part = lines[0], fraction(spent, forward.ledger_ns)
    back = _goes_back(facts, forward)
    left = Left(1 - 0.8 * part, 1 - 0.95 * part, 1 - 0.5 * part)
    return Finding(
        rule="forward_one_by_one",
        cause=f"{place.where} in {shown_function(place)} calls a recurrent layer for one time step after the other: "
        f"{as_percent(share)} of the training time{_and_back(facts, back)}.",
        place=place,
        operations=(FORWARD,),
        evidence=(
            f"{as_percent(part)} of {FORWARD} is in this loop.",
            f"{place.where} `{shortened(place.source)}` takes {as_percent(fraction(place.ns, spent))} of it.",
        ),
        change=WHOLE_SEQUENCE,
        gain=gain_if(facts, {FORWARD: left, **back}),
        check=compare_with_change(facts),
    )


def _goes_back(facts: Facts, forward: Operation) -> dict[str, Left]:
    """What is left of the backward pass, if it goes back through these calls."""
    backward = facts.operation("backward")
    long = backward is not None and number(backward.ledger_ns) >= LONG_BACKWARD * number(forward.ledger_ns)
    return {"backward": BACKWARD} if long else {}


def _and_back(facts: Facts, back: dict[str, Left]) -> str:
    passes = [item for item in (facts.operation(name) for name in back) if item is not None]
    return f", and much of the {as_percent(share_of(facts, passes))} in backward passes" if passes else ""


def _around(facts: Facts) -> dict[str, Left]:
    """What the loop around the calls does besides: taking rows, putting results together."""
    return {
        own(phase): Left(1 - 0.8 * part, 1 - part, 1 - 0.5 * part) for phase, part in beside(facts, FORWARD).items()
    }
