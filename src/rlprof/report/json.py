"""The report as JSON. Its schema, docs/report.schema.json, is generated from the types that are written."""

from __future__ import annotations

from typing import Any

import msgspec

from rlprof.analysis.report import Report

MOST_INDENTED = 4 << 20
"""Bytes. Larger reports are written without indentation."""


def to_json(report: Report) -> str:
    encoded = msgspec.json.encode(report)
    return (msgspec.json.format(encoded, indent=1) if len(encoded) < MOST_INDENTED else encoded).decode() + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema (2020-12) of what `to_json` writes."""
    return {
        "title": "rlprof report",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(Report),
    }
