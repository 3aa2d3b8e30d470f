"""The web application: which address shows what. `Guard` has checked a request before it comes here."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from rlprof.errors import RlprofError, UnreadableError
from rlprof.live.feed import Feed
from rlprof.report.html.document import to_html
from rlprof.serve import perfetto
from rlprof.serve.assets import asset
from rlprof.serve.comparing import compare_runs
from rlprof.serve.files import MISSING, traces
from rlprof.serve.guard import ACTION_HEADER
from rlprof.serve.home import Home
from rlprof.serve.pages import comparison_page, home_page, run_page, sentence_page
from rlprof.serve.runs import Runs
from rlprof.serve.stacks import stacks_of
from rlprof.serve.stream import Stream, Streams
from rlprof.serve.watch import Seen, Watch

IDLE = 60.0
"""Seconds after which a session that no page looks at is closed."""
MOST_RUNS = 64
"""Sessions that are kept open at once."""

Endpoint = Callable[[Request], Awaitable[Any]]


class Application:
    """The pages of one folder of sessions."""

    def __init__(self, parent: Path) -> None:
        self.runs = Runs(parent)
        self.feed: Callable[[Path], Feed] = Feed
        """Makes what reads a session."""
        self.action = secrets.token_urlsafe(24)
        """Only this server's pages know it. Actions must send it."""
        self._threads = ThreadPoolExecutor(4, "rlprof-serve")
        self._streams = Streams()
        self.watches: dict[str, Watch] = {}
        self._home: Home | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self.asgi = Starlette(routes=list(self._routes()), exception_handlers=_HANDLERS)

    def _routes(self) -> list[Route]:
        run = "/run/{run}"
        shown: list[tuple[str, Endpoint]] = [
            ("/", self._show_home), ("/events", self._home_events), (run, self._show_run),
            (f"{run}/events", self._run_events), (f"{run}/report.html", self._offline_report),
            (f"{run}/file/{{path:path}}", self._file), (f"{run}/trace/{{path:path}}", self._trace),
            ("/compare", self._compare), ("/asset/{mark}/{name}", self._asset),
            ("/perfetto/trace/{run}/{path:path}", self._trace_file), ("/perfetto/{path:path}", self._perfetto),
        ]  # fmt: skip
        actions = [(f"{run}/capture", self._capture), (f"{run}/stacks", self._stacks)]
        return [
            *(Route(path, endpoint, methods=["GET"]) for path, endpoint in shown),
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in actions),
        ]

    async def close(self) -> None:
        """End all streams, so that the server can stop."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for watch in self.watches.values():
            await watch.close()
        if self._home is not None:
            await self._home.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # Pages

    async def _show_home(self, _: Request) -> Response:
        home = self._the_home()
        if not home.is_pumping:
            await home.work()
        return HTMLResponse(home_page(home))

    async def _show_run(self, request: Request) -> Response:
        watch = await self._watch(request)
        page = await self._in_thread(run_page, watch, self.action)
        return HTMLResponse(page)

    async def _compare(self, request: Request) -> Response:
        given = [request.query_params.get(side, "") for side in "ab"]
        folders = [self.runs.folder(name) for name in given]
        comparison = await self._in_thread(compare_runs, *folders)
        page, policy = comparison_page(comparison)
        return HTMLResponse(page, headers={"content-security-policy": policy})

    async def _offline_report(self, request: Request) -> Response:
        watch = await self._watch(request)
        if watch.report is None:
            raise RlprofError("This run has no report yet: nothing was written.")
        text = await self._in_thread(to_html, watch.report)
        return HTMLResponse(text, headers=perfetto.as_download(f"{watch.folder.name}.html"))

    # Streams

    async def _home_events(self, request: Request) -> Stream:
        home = self._the_home()
        return self._streams.stream(home, home.version_in(_mark(request)), request.query_params.get("browser", ""))

    async def _run_events(self, request: Request) -> Stream:
        watch = await self._watch(request)
        cursor = Seen(0, watch.version_in(_mark(request)))
        return self._streams.stream(watch, cursor, request.query_params.get("browser", ""))

    # Files

    async def _file(self, request: Request) -> Response:
        folder = self.runs.folder(request.path_params["run"])
        return perfetto.download(folder, request.path_params["path"])

    async def _trace_file(self, request: Request) -> Response:
        """A trace for Perfetto, which reads nothing else: a trace that took it over could ask for any file."""
        folder, path = self.runs.folder(request.path_params["run"]), request.path_params["path"]
        if path not in await self._in_thread(traces, folder):
            raise UnreadableError(MISSING)
        return perfetto.download(folder, path)

    async def _trace(self, request: Request) -> Response:
        folder = self.runs.folder(request.path_params["run"])
        return perfetto.opened(request.headers["host"], folder.name, request.path_params["path"])

    async def _perfetto(self, request: Request) -> Response:
        return perfetto.page_file(request.headers["host"], request.path_params["path"])

    async def _asset(self, request: Request) -> Response:
        return asset(request.path_params["mark"], request.path_params["name"])

    # Actions

    async def _capture(self, request: Request) -> Response:
        return await self._act(request, Watch.capture, "")

    async def _stacks(self, request: Request) -> Response:
        return await self._act(request, stacks_of, [])

    async def _act(self, request: Request, act: Callable[[Watch], Any], nothing: Any) -> Response:
        """The answer of an action as JSON: what it found, and a problem in one sentence."""
        if not secrets.compare_digest(request.headers.get(ACTION_HEADER, "").encode(), self.action.encode()):
            return JSONResponse({"problem": "This page is from another server. Load it again."}, 403)
        try:
            watch = await self._watch(request)
            # Not in the threads that read: stacks take seconds if a process does not answer.
            found = await asyncio.to_thread(act, watch)
        except (RlprofError, OSError) as error:
            problem = f"This run cannot be written: {error.strerror}." if isinstance(error, OSError) else str(error)
            problem = problem.replace(str(self.runs.parent / request.path_params["run"]), "This run")
            return JSONResponse({"problem": problem, "found": nothing}, 409)
        return JSONResponse({"problem": "", "found": found})

    # What is shared

    def _the_home(self) -> Home:
        if self._home is None:
            self._home = Home(self.runs, self._threads)
        return self._home

    async def _watch(self, request: Request) -> Watch:
        """The session of an address, read as it is now."""
        folder = self.runs.folder(request.path_params["run"])
        watch = self.watches.get(folder.name)
        if watch is None:
            self._sweep(MOST_RUNS - 1)
            watch = self.watches[folder.name] = Watch(folder, self._threads, self.feed)
        try:
            await watch.ready()
        except RlprofError:
            self.watches.pop(folder.name, None)
            raise
        return watch

    def _sweep(self, most: int = MOST_RUNS) -> None:
        """Forget sessions that no page looks at: the longest idle ones, if there are too many."""
        loop = asyncio.get_running_loop()
        idle = [(watch.idle_since, name) for name, watch in self.watches.items() if watch.idle_since is not None]
        for place, (since, name) in enumerate(sorted(idle)):
            if loop.time() - since > IDLE or len(self.watches) > most - place:
                self.watches.pop(name).close_feed()
        if self._sweeping is None or self._sweeping.when() <= loop.time():
            self._sweeping = loop.call_later(IDLE, self._sweep)

    async def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)


def _mark(request: Request) -> str:
    """What the page has, as it says itself: when it connects first, or again after an interruption."""
    return request.headers.get("last-event-id") or request.query_params.get("since", "")


async def _unknown(_: Request, __: Exception) -> Response:
    return HTMLResponse(sentence_page("Not found", "There is no such page here."), 404)


async def _explained(_: Request, error: Exception) -> Response:
    return HTMLResponse(sentence_page("Not available", str(error)), 404)


async def _failed(_: Request, error: Exception) -> Response:
    reason = f"{error.filename or 'A file'}: {error.strerror}" if isinstance(error, OSError) else type(error).__name__
    return HTMLResponse(sentence_page("Not available", f"This cannot be shown: {reason}."), 500)


_HANDLERS: dict[Any, Any] = {404: _unknown, RlprofError: _explained, Exception: _failed}
