"""A page that needs nothing else, not even a script."""

from __future__ import annotations

import re
from importlib import resources

from rlprof.render.html.markup import Markup, element, escape, join

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page(kind: str, title: str, body: Markup, more: str = "") -> str:
    """`kind` says what it is, above the title and behind it in the browser's."""
    filled = {
        "title": escape(f"{title} - {kind}"),
        "style": Markup(_file("page.css")),
        "header": join([element("p", kind, class_="kicker"), element("h1", title + more)]),
        "body": body,
    }
    # In one pass: a name that looks like a place of the page is not filled in again.
    return _PLACE.sub(lambda place: filled[place[1]], _file("plain.html"))


def _file(name: str) -> str:
    return (resources.files("rlprof.render.html") / "page" / name).read_text(encoding="utf-8")
