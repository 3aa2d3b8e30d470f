"""The files of a session that its page offers: its traces for Perfetto, everything else to download.

Their names come from the session, so a file is only opened if it lies in the session's folder, whatever its name.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from rlprof.analysis.figures import many
from rlprof.analysis.report import Report
from rlprof.capture.torch.capture import TRACE
from rlprof.errors import UnreadableError
from rlprof.render.html.markup import Markup, element, plain_name
from rlprof.session.live import LiveSession

MOST = 40
MISSING = "There is no such file in this run."


def files(report: Report, run: str) -> Markup:
    """Links to the files, the newest first."""
    found = sorted(report.facts.artifacts, key=lambda artifact: -artifact.time)
    shown = [(artifact.path, artifact.kind) for artifact in found[:MOST]]
    links = [element("li", element("a", label(*one), href=address(run, *one))) for one in shown]
    if not links:
        return Markup()
    more = element("p", f"{many(len(found) - MOST, 'older file')} not shown.", class_="hint")
    body = element("ul", *links, class_="files")
    return element("details", element("summary", many(len(found), "file")), body, more if len(found) > MOST else None)


def label(path: str, kind: str) -> str:
    return f"Open {plain_name(path)} in Perfetto" if kind == TRACE else plain_name(path)


def address(run: str, path: str, kind: str) -> str:
    """Where the browser opens or downloads a file."""
    place = "/".join(quote(part, safe="") for part in path.split("/"))
    return f"/run/{quote(run, safe='')}/{'trace' if kind == TRACE else 'file'}/{place}"


def traces(folder: Path) -> list[str]:
    """The paths of the torch traces that a session lists."""
    with LiveSession(folder) as session:
        return [artifact.path for artifact in session.artifacts() if artifact.kind == TRACE]


def open_inside(folder: Path, name: str) -> tuple[BinaryIO, int]:
    """A regular file of a session's folder, and its size. Raises UnreadableError for everything else: names that lead
    out of the folder, links, folders, devices."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts):
        raise UnreadableError(MISSING)
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        at = os.open(folder, flags | os.O_DIRECTORY)
        try:
            # Step by step, so that no link is followed, even one that is made meanwhile.
            for part in parts[:-1]:
                inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=at)
                os.close(at)
                at = inner
            # Without O_NONBLOCK, opening a pipe would wait for its writer.
            file = os.open(parts[-1], flags | os.O_NONBLOCK, dir_fd=at)
        finally:
            os.close(at)
        seen = os.fstat(file)
    except (OSError, UnicodeError, ValueError) as error:
        raise UnreadableError(MISSING) from error
    if not stat.S_ISREG(seen.st_mode):
        os.close(file)
        raise UnreadableError(MISSING)
    return os.fdopen(file, "rb"), seen.st_size
