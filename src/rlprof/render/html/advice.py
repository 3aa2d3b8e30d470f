"""Advice as a card of an HTML page, for the report of a session and for traces."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice
from rlprof.render.advice import gain_of
from rlprof.render.html.markup import Markup, element, plain_name, sentence


def advice_card(advice: Advice, first: bool = False) -> Markup:
    gain = gain_of(advice)
    badges = [element("span", text, class_="badge good") for text in ("Try first" if first else None, gain) if text]
    names = [element("code", plain_name(name)) for name in advice.operations[:8]]
    return element(
        "article",
        element("h3", sentence(advice.title)),
        element("p", *badges, *names, class_="chips"),
        element("h4", "Do"),
        element("p", sentence(advice.action)),
        element("h4", "Evidence"),
        element("ul", *(element("li", sentence(evidence)) for evidence in advice.evidence)),
        element("h4", "Check"),
        element("p", sentence(advice.check)),
        class_="card advice",
    )
