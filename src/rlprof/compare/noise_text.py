"""The noise of comparisons on this machine, as text and JSON."""

from __future__ import annotations

from dataclasses import asdict

import msgspec
from rich.console import Console

from rlprof.analysis.figures import many
from rlprof.compare.noise import Noise
from rlprof.render.intervals import percent_of
from rlprof.render.layout import Layout, as_text

SCHEMA_VERSION = 1


def to_json(found: Noise) -> str:
    content = {"schema_version": SCHEMA_VERSION, **asdict(found)}
    return msgspec.json.format(msgspec.json.encode(content)).decode() + "\n"


def render(found: Noise, console: Console) -> None:
    layout = Layout(console)
    layout.line(_verdict(found), "bold")
    layout.line(f"A: rlprof {found.command}")
    layout.line(
        f"{many(found.pairs, 'pair')} of interleaved processes differ by {percent_of(found.difference)} on average. "
        f"Single pairs differ by {percent_of(found.spread)} (standard deviation)."
    )
    layout.heading("Smallest difference that a comparison can show here")
    for pairs, effect in found.smallest:
        layout.line(f"with {pairs:2} pairs: {percent_of(effect)}", indent=2)
    layout.line("Such a difference is found four times out of five.")


to_text = as_text(render)


def _verdict(found: Noise) -> str:
    if found.false_positives is None:
        return f"{many(found.pairs, 'pair')} are too few to know how often equal programs would be called different."
    return (
        f"A against A: about {percent_of(found.false_positives)} of comparisons would call equal programs different."
        f" {percent_of(found.alpha)} are expected."
    )
