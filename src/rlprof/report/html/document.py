"""The report as one self-contained HTML page: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from typing import Any

from rlprof.analysis.report import Report
from rlprof.render.html.markup import Markup, element, escape, plain_name, prose
from rlprof.render.html.plain import file, fill, page
from rlprof.report.answer import incomplete, origin, speed, trained
from rlprof.report.html import findings, lines, machine, run, tables
from rlprof.report.html.charts import chart_data

_SCRIPTS = (
    "figures", "theme", "svg", "axes", "tip", "boxes", "tree", "functions", "lanes", "ledger", "distribution",
    "resources", "table", "search", "copy", "start",
)  # fmt: skip
"""Joined in this order, so that each may use the ones before it."""

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
        lines = (origin(report), incomplete(report), speed(report.facts))
        return page("rlprof", title, element("section", *(element("p", prose(line)) for line in lines if line)))
    script = _script()
    filled = {name: section(report) for name, section in _SECTIONS.items()}
    filled |= {
        "title": escape(plain_name(report.facts.session.name)),
        "policy": escape(_policy(script)),
        "report_style": Markup(file("report.css")),
        "script": Markup(script),
        "data": Markup(_json(chart_data(report))),
    }
    return fill("page.html", filled)


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
    joined = "\n".join(file(f"{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{joined}\n}})();'
