"""The run in the HTML report: its command, machine, packages and settings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rlprof.analysis.figures import many, size
from rlprof.analysis.report import Report
from rlprof.render.html.findings import command
from rlprof.render.html.markup import Markup, element, prose

_MOST_SETTINGS = 200


def run(report: Report) -> Markup:
    entries = [element("div", element("dt", name), element("dd", shown)) for name, shown in _particulars(report)]
    return element("dl", *entries, class_="particulars")


def _particulars(report: Report) -> Iterator[tuple[str, str]]:
    session = report.facts.session
    yield "command", command(shlex.join(session.command))
    machine = f"{session.host}: {session.processor}, {many(session.cores, 'core')}, {size(session.memory)}"
    yield "machine", prose(machine)
    yield "platform", prose(f"{session.platform}, Python {session.python}")
    twin = "the Python twin of rlprof's C core: measuring costs about 100 times more"
    yield "recorded by", "rlprof's C core" if session.core == "c" else twin
    yield "folder", prose(session.folder)
    yield "process", str(session.pid)
    if session.git is not None:
        changed = ", with uncommitted changes" if session.git.changed else ""
        yield "git", prose(f"{session.git.revision[:12]} on {session.git.branch}{changed}")
    for title in ("packages", "environment", "settings"):
        shown = list(getattr(session, title).items())[:_MOST_SETTINGS]
        separator = " " if title == "packages" else "="
        yield title, prose(", ".join(f"{name}{separator}{value}" for name, value in shown) or "none")
    if report.facts.artifacts:
        yield "files", prose(", ".join(artifact.path for artifact in report.facts.artifacts[:_MOST_SETTINGS]))
