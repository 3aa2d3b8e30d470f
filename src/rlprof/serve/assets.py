"""Scripts and style sheets as files: without them inline, a name that were markup could still run nothing."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from starlette.responses import Response

from rlprof.render.html.markup import Markup, element
from rlprof.render.html.plain import file as shared
from rlprof.report.html.document import SCRIPTS, STYLES, as_one_script

_CACHED = {"cache-control": "private, max-age=86400, immutable"}
"""Their address has their digest, so that a newer rlprof has other addresses."""


@cache
def own(name: str) -> str:
    """A file of this feature's page folder."""
    return (resources.files("rlprof.serve") / "page" / name).read_text(encoding="utf-8")


@cache
def contents() -> dict[str, tuple[str, str]]:
    """By name: the text and its type."""
    base = (shared(f"{name}.js") for name in SCRIPTS)
    live = (own(f"{name}.js") for name in ("stream", "sparkline", "strip", "stacks", "actions", "replace", "live"))
    home = (own(f"{name}.js") for name in ("stream", "order", "rows", "home"))
    return {
        "run.js": (as_one_script([*base, *live]), "text/javascript"),
        "home.js": (as_one_script([shared("figures.js"), *home]), "text/javascript"),
        "style.css": ("\n".join([*map(shared, STYLES), own("serve.css")]), "text/css"),
    }


@cache
def digest(name: str) -> str:
    return hashlib.sha256(contents()[name][0].encode()).hexdigest()[:16]


def head(script: str) -> tuple[Markup, Markup]:
    """The elements of a page's head that load the style sheet, and a script that fills the page before it is shown."""
    style = element("link", rel="stylesheet", href=f"/asset/{digest('style.css')}/style.css")
    return style, element("script", src=f"/asset/{digest(script)}/{script}", defer=True, blocking="render")


def asset(mark: str, name: str) -> Response:
    found = contents().get(name)
    if found is None or mark != digest(name):
        return Response("There is no such file.\n", 404, media_type="text/plain")
    return Response(found[0], media_type=found[1], headers=_CACHED)
