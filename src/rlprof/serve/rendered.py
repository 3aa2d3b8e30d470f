"""The report of a session as its page needs it: parts with versions, so that a page only gets what has changed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlprof.analysis.lanes import lane_timeline
from rlprof.analysis.report import Report
from rlprof.errors import RlprofError
from rlprof.report.answer import trained
from rlprof.report.html.charts import chart_data, lanes_data
from rlprof.report.html.document import sections
from rlprof.serve.files import files
from rlprof.session.reader import Session

RECENT = 60
"""Iterations that the timeline of lanes can show one by one."""


@dataclass(slots=True)
class Rendered:
    """What all pages of a session show. `version` counts the reports."""

    version: int = 0
    trained: bool = False
    parts: dict[str, str] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    """The data of each chart as JSON."""
    changed: dict[str, int] = field(default_factory=dict)
    """By name of a part or of a chart: the version since when it is as it is."""

    def after(self, report: Report, folder: Path) -> Rendered:
        """The same with a newer report. Works for a while, so it is called in a thread."""
        if not trained(report.facts):
            return Rendered(self.version + 1)
        parts: dict[str, str] = {**sections(report), "files": files(report, folder.name)}
        charts = {**chart_data(report), "recent": _recent(report, folder)}
        data = {name: encoded(chart) for name, chart in charts.items()}
        version = self.version + 1
        changed = {
            name: self.changed[name] if self._text(name) == text else version
            for name, text in (*parts.items(), *data.items())
        }
        return Rendered(version, True, parts, data, changed)

    def charts(self) -> str:
        """The data of all charts, as JSON."""
        return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in self.data.items()) + "}"

    def since(self, version: int) -> str:
        """What is newer than a version, as JSON. With 0: everything."""
        texts = {name: text for name, text in self.parts.items() if self.changed[name] > version}
        charts = ",".join(
            f"{json.dumps(name)}:{text}" for name, text in self.data.items() if self.changed[name] > version
        )
        return (
            f'{{"version":{self.version},"trained":{json.dumps(self.trained)},'
            f'"parts":{json.dumps(texts)},"data":{{{charts}}}}}'
        )

    def _text(self, name: str) -> str | None:
        return self.parts.get(name, self.data.get(name))


def encoded(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _recent(report: Report, folder: Path) -> dict[str, Any] | None:
    """The lanes in the last iterations, if the timeline of the whole run merges iterations."""
    whole = report.facts.lanes
    if not whole.strips or len(whole.first) == whole.last[-1] - whole.first[0] + 1:
        return None
    try:
        with Session(folder) as session:
            snapshot, iterations = session.snapshot(), session.iterations()[-RECENT:]
            timeline = lane_timeline(session, snapshot, iterations)
    except (RlprofError, OSError):
        return None  # deleted meanwhile; the next frame says so
    single = all(one == last for one, last in zip(timeline.first, timeline.last))
    return lanes_data(timeline, report) if single else None
