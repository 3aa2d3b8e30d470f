"""What a comparison of A with A says of this machine, as text."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import msgspec
from rich.console import Console

from rlprof.analysis.figures import many
from rlprof.compare.noise import SelfTest
from rlprof.render.layout import Layout, plain

SCHEMA_VERSION = 1


def to_text(found: SelfTest, width: int = 100) -> str:
    return plain(partial(render, found), width)


def to_json(found: SelfTest) -> str:
    told = {"schema_version": SCHEMA_VERSION, **asdict(found)}
    return msgspec.json.format(msgspec.json.encode(told)).decode() + "\n"


def render(found: SelfTest, console: Console) -> None:
    layout = Layout(console)
    layout.line(_verdict(found), "bold")
    layout.line(f"A: rlprof {found.command}")
    layout.line(
        f"{many(found.pairs, 'pair')} of processes that took turns differ by {_percent(found.difference)} on average; "
        f"single ones by {_percent(found.spread)} (standard deviation)."
    )
    layout.heading("The smallest difference it can show here")
    for pairs, effect in found.smallest:
        layout.line(f"with {pairs:2} pairs: {_percent(effect)}", indent=2)
    layout.line("That is what is found four times out of five.")


def _verdict(found: SelfTest) -> str:
    if found.false_positives is None:
        return f"{many(found.pairs, 'pair')}: too few to say how often equal programs would be called different."
    return (
        f"A against A: equal programs would be called different in about {_percent(found.false_positives)} of"
        f" comparisons; {_percent(found.alpha)} is what is promised."
    )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"
