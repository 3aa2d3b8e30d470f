"""The report as one self-contained HTML page: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

from rlprof.analysis.report import Report
from rlprof.errors import MissingLibraryError
from rlprof.render.html.markup import Markup, escape, plain_name
from rlprof.render.html.plain import file, fill
from rlprof.report.html import findings, machine, tables
from rlprof.report.html.charts import chart_data

_SCRIPTS = ("figures", "theme", "icicle", "ledger", "distribution", "resources", "table", "start")
"""Joined in this order, so that each may use the ones before it."""

_SECTIONS = {
    "header": findings.header,
    "headline": findings.headline,
    "findings": findings.findings,
    "call_tree": tables.call_tree,
    "operations": tables.operations,
    "rollout": tables.rollout,
    "categories": tables.categories,
    "resources": machine.resources,
    "parallelism": machine.parallelism,
    "expectation": machine.expectation,
    "notes": machine.notes,
}
"""The placeholders of page.html that a report fills."""


def to_html(report: Report) -> str:
    """The page. Its text and tables need no JavaScript."""
    plotly, script = _plotly(), _script()
    filled = {name: section(report) for name, section in _SECTIONS.items()}
    filled |= {
        "title": escape(plain_name(report.facts.session.name)),
        "policy": escape(_policy(plotly, script)),
        "plotly": Markup(plotly),
        "script": Markup(script),
        "data": Markup(_json(chart_data(report))),
    }
    return fill("page.html", filled)


def _policy(*scripts: str) -> str:
    """The content security policy: the browser runs these scripts and nothing else."""
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    # plotly uses inline styles, and images from data: and blob: URLs.
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
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


def _plotly() -> str:
    """plotly.js, read from the installed package without importing it, which would take a second."""
    found = importlib.util.find_spec("plotly")
    for folder in (found.submodule_search_locations or []) if found else []:
        path = Path(folder, "package_data", "plotly.min.js")
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise MissingLibraryError("the HTML report", "plotly", "report")
