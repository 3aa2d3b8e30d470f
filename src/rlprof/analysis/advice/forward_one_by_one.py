"""A network is called for one row at a time inside an update, where one call could take the whole batch."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import beside, place_of
from rlprof.analysis.advice.lookup import CONSIDERABLE, ENOUGH_CALLS, number, ratio, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.analysis.topology import own

FORWARD = "loss_forward"
MANY = 16
"""Forward passes per optimizer step. Actors, critics and their targets are below ten."""
SHORT_NS = 1_000_000
"""A longer call computes a batch."""

BACKWARD = Left(0.4, 0.1, 1.0)
"""Of the backward pass. It gets shorter, too, if it goes back through these calls."""
LONG_BACKWARD = 0.8
"""Times the forward passes. A shorter backward pass does not go back through them."""


def forward_one_by_one(facts: Facts) -> Finding | None:
    """Speaks if there are 16 or more short forward passes per optimizer step, and they take a tenth of the time."""
    forward, steps = facts.operation(FORWARD), facts.operation("optimizer_step")
    if forward is None or steps is None or steps.calls < 1 or forward.calls < ENOUGH_CALLS:
        return None
    each, share = ratio(forward.calls, steps.calls), share_of(facts, [forward])
    if each < MANY or share < CONSIDERABLE or number(forward.p50_ns) > SHORT_NS:
        return None
    place = place_of(facts, FORWARD)
    where = f" at {place.where}" if place is not None else ""
    backward = facts.operation("backward")
    through = backward is not None and number(backward.ledger_ns) >= LONG_BACKWARD * number(forward.ledger_ns)
    return Finding(
        rule="forward_one_by_one",
        cause=f"A network is called {count(round(each))} times per optimizer step{where}, for few rows each: "
        f"{as_percent(share)} of the training time{' and a part of the backward passes' if through else ''}.",
        place=place,
        operations=(FORWARD,),
        evidence=(
            f"{count(forward.calls)} forward passes for {count(steps.calls)} optimizer steps.",
            f"Half of them took less than {duration(number(forward.p50_ns))}, which is mostly the cost of a call.",
        ),
        change="Call the network once for the whole batch: `labels = teacher(batch)` instead of "
        "`torch.stack([teacher(row) for row in batch])`. A recurrent network takes a whole sequence in one call: "
        "`outputs, state = lstm(sequence, state)`. Split it where episodes end.",
        gain=gain_if(
            facts, {FORWARD: Left(0.2, 0.05, 0.5), **({"backward": BACKWARD} if through else {}), **_around(facts)}
        ),
        check=compare_with_change(facts),
    )


def _around(facts: Facts) -> dict[str, Left]:
    """What the loop around the calls does besides: taking rows, putting results together."""
    return {
        own(phase): Left(1 - 0.8 * part, 1 - part, 1 - 0.5 * part) for phase, part in beside(facts, FORWARD).items()
    }
