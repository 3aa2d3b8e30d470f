"""The formats of `rlprof report`. Each is a function from a report to text, imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from rlprof.analysis.report import Report

_FORMATS = {
    "text": ("rlprof.report.text", "to_text"),
    "html": ("rlprof.report.html.document", "to_html"),
    "json": ("rlprof.report.json", "to_json"),
    "csv": ("rlprof.render.spreadsheet", "to_csv"),
    "markdown": ("rlprof.report.markdown", "to_markdown"),
}

NAMES = tuple(_FORMATS)


def renderer(name: str) -> Callable[[Report], str]:
    module, function = _FORMATS[name]
    found: Callable[[Report], str] = getattr(import_module(module), function)
    return found
