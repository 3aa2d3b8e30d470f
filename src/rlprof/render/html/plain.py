"""Self-contained pages: filling in a template, and a page without scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from rlprof.render.html.markup import Markup, element, escape, join

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page(kind: str, title: str, body: Markup, more: str = "", above: Markup | None = None) -> str:
    """`kind` is shown above the title, and after it in the title of the browser. `above` is the top of the page."""
    filled = {
        "title": escape(f"{title} - {kind}"),
        "header": join([element("p", kind, class_="kicker"), element("h1", title + more)]),
        "body": body,
        "above": above or Markup(),
    }
    return fill("plain.html", filled)


def fill(template: str, filled: Mapping[str, Markup]) -> str:
    """A template of page/ with its placeholders filled in, and the style sheet."""
    return fill_in(file(template), {**filled, "style": Markup(file("page.css"))})


def fill_in(template: str, filled: Mapping[str, Markup]) -> str:
    """The text of a template with its placeholders filled in."""
    # In one pass, so that a name that looks like a placeholder is not filled in again.
    return _PLACE.sub(lambda place: filled[place[1]], template)


@cache
def file(name: str) -> str:
    return (resources.files("rlprof.render.html") / "page" / name).read_text(encoding="utf-8")
