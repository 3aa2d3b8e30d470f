"""The report as one self-contained HTML page: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from rlprof.analysis.report import Report
from rlprof.render.html.markup import Markup, element, escape, plain_name, prose
from rlprof.render.html.plain import file, fill, page
from rlprof.report.answer import incomplete, origin, speed, trained
from rlprof.report.html import findings, lines, machine, run, tables
from rlprof.report.html.charts import chart_data

SCRIPTS = (
    "figures", "theme", "parts", "svg", "axes", "tip", "boxes", "tree", "functions", "zoom", "lanes", "ledger",
    "distribution", "resources", "table", "search", "copy", "report",
)  # fmt: skip
"""Joined in this order, so that each may use the ones before it. They only define functions; `start` calls them."""

STYLES = ("page.css", "report.css")

_SECTIONS = {
    "header": findings.header,
    "findings": findings.findings,
    "call_tree": tables.call_tree,
    "functions": lines.functions,
    "lines": lines.lines,
    "operations": tables.operations,
    "rollout": tables.rollout,
    "categories": tables.categories,
    "resources": machine.resources,
    "parallelism": machine.parallelism,
    "expectation": machine.expectation,
    "run": run.run,
    "notes": machine.notes,
}
"""The placeholders of page.html that a report fills."""


def to_html(report: Report) -> str:
    """The page. Its text and tables need no JavaScript. Without a training it says so, and nothing else."""
    if not trained(report.facts):
        title = plain_name(report.facts.session.name)
        return page("rlprof", title, element("section", *untrained(report)))
    script = _script()
    filled = {
        "title": title_of(report),
        "policy": element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        "styles": element("style", Markup("\n".join(map(file, STYLES)))),
        "live": Markup(),
        "home": Markup(),
        "data": data_element(chart_data(report)),
        "script": element("script", Markup(script)),
    }
    return fill("page.html", {**filled, **sections(report)})


def sections(report: Report) -> dict[str, Markup]:
    """The texts and tables, by the names of their places in page.html."""
    return {name: section(report) for name, section in _SECTIONS.items()}


def title_of(report: Report) -> Markup:
    return escape(plain_name(report.facts.session.name))


def untrained(report: Report) -> list[Markup]:
    """What there is to say without a training."""
    lines = (origin(report), incomplete(report), speed(report.facts))
    return [element("p", prose(line)) for line in lines if line]


def data_element(data: Any) -> Markup:
    """The data of the charts, which `start` reads. No script runs in it."""
    return element("script", Markup(_json(data)), type="application/json", id="data")


def as_one_script(scripts: Iterable[str]) -> str:
    """Scripts joined, with their names hidden from the page."""
    joined = "\n".join(scripts)
    return f'(() => {{\n"use strict";\n{joined}\n}})();'


def _policy(script: str) -> str:
    """The content security policy: the browser runs this script and nothing else."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Bars and swatches have inline styles; the empty icon is a data: URL.
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _json(data: Any) -> str:
    """JSON that cannot end its script element, nor begin a comment or an entity."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _script() -> str:
    return as_one_script(file(f"{name}.js") for name in (*SCRIPTS, "start"))
