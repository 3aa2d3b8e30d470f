"""A self-contained page without scripts."""

from __future__ import annotations

import re
from importlib import resources

from rlprof.render.html.markup import Markup, element, escape, join

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page(kind: str, title: str, body: Markup, more: str = "") -> str:
    """`kind` is shown above the title, and after it in the title of the browser."""
    filled = {
        "title": escape(f"{title} - {kind}"),
        "style": Markup(_file("page.css")),
        "header": join([element("p", kind, class_="kicker"), element("h1", title + more)]),
        "body": body,
    }
    # In one pass, so that a name that looks like a placeholder is not filled in again.
    return _PLACE.sub(lambda place: filled[place[1]], _file("plain.html"))


def _file(name: str) -> str:
    return (resources.files("rlprof.render.html") / "page" / name).read_text(encoding="utf-8")
