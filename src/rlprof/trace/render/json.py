"""Summaries and differences as JSON, straight from the types that the analysis returns."""

from __future__ import annotations

import msgspec

from rlprof.trace.analysis.diff import TraceDiff
from rlprof.trace.analysis.summary import Summary


def to_json(found: Summary | TraceDiff) -> str:
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"
