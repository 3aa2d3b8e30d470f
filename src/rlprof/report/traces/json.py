"""What is said of traces as JSON, from the very types that the analysis returns."""

from __future__ import annotations

import msgspec

from rlprof.analysis.traces.diff import TraceDiff
from rlprof.analysis.traces.summary import Summary


def to_json(found: Summary | TraceDiff) -> str:
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"
