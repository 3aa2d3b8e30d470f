"""The Perfetto UI under a path of this server, for the traces of its sessions.

Perfetto needs inline scripts and evaluation, so it has a policy of its own. That policy lets it reach only its own
files and the traces, and open no window: a trace that took it over could neither read the runs nor start an action.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from mimetypes import guess_type
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import anyio.to_thread
from starlette.responses import RedirectResponse, Response, StreamingResponse

from rlprof.errors import MissingLibraryError, UnreadableError
from rlprof.serve.files import open_inside
from rlprof.trace.viewer import perfetto_folder

ROOT = "/perfetto/"
_CHUNK = 1 << 18
_CACHED = "private, max-age=86400"


def opened(host: str, run: str, path: str) -> Response:
    """Go to Perfetto with a trace."""
    try:
        perfetto_folder()
    except MissingLibraryError as error:
        raise UnreadableError(f"{error}.") from error
    trace = f"http://{host}{ROOT}trace/{quote(run, safe='')}/{quote(path)}"
    return RedirectResponse(f"{ROOT}#!/?url={quote(trace, safe='')}", status_code=303)


def page_file(host: str, path: str) -> Response:
    """One of the files of the UI."""
    file, size = open_inside(perfetto_folder(), path or "index.html")
    kind = guess_type(path or "index.html")[0] or "application/octet-stream"
    cache = _CACHED if path else "no-store"
    return sent(file, size, kind, {"content-security-policy": _policy(host), "cache-control": cache})


def sent(file: BinaryIO, size: int, kind: str, headers: dict[str, str]) -> Response:
    """An open file as an answer."""
    return StreamingResponse(_chunks(file, size), media_type=kind, headers={**headers, "content-length": str(size)})


def download(folder: Path, path: str) -> Response:
    """A file of a session, never shown as a page of this server."""
    file, size = open_inside(folder, path)
    return sent(file, size, "application/octet-stream", as_download(path.rpartition("/")[2]))


def as_download(name: str) -> dict[str, str]:
    """The headers of a file that the browser saves. Even if it showed the file, no script could run in it."""
    shown = quote(name, safe="")
    return {"content-disposition": f"attachment; filename*=UTF-8''{shown}", "content-security-policy": "sandbox"}


async def _chunks(file: BinaryIO, size: int) -> AsyncIterator[bytes]:
    """At most the size that was announced: a file that is still written may grow."""
    with file:
        while size > 0:
            chunk = await anyio.to_thread.run_sync(file.read, min(size, _CHUNK))
            if not chunk:
                return
            size -= len(chunk)
            yield chunk


def _policy(host: str) -> str:
    # A policy cannot name an address of IPv6.
    own = "'self'" if host.startswith("[") else f"http://{host}{ROOT}"
    return (
        f"default-src {own} 'unsafe-inline' 'unsafe-eval' data: blob:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; sandbox allow-scripts allow-same-origin allow-downloads allow-modals"
    )
