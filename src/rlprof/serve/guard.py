"""Who may talk to the server: its own pages in the browser of the person who started it, and nobody else.

Every request passes through here before anything of a session is touched:

- The Host must be a name of this server. A page of an attacker whose name points to 127.0.0.1 (DNS rebinding) has its
  own name there.
- A secret is needed. The printed address has it as a token, which a redirect exchanges for a cookie.
- What changes something, and the streams, must come from this server's own pages (CSRF): their Origin shows it, and
  actions need a second secret that only these pages know.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rlprof.render.html.markup import element

MOST_BODY = 4096
"""Bytes of a request's body. Actions have a short one."""
MOST_HEAD = 16_384
"""Bytes of its address and headers."""
ACTION_HEADER = "x-rlprof-action"
REFUSED = "This page needs the address with the token that rlprof serve has printed."
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy of all pages but Perfetto's. Bars and swatches have inline style attributes; there is no
inline style sheet, and no inline script."""


class Guard:
    """Passes a request on, or refuses it.

    hosts: the names and addresses that requests may use, without the port.
    with_token: False switches the token off.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], port: int, with_token: bool = True) -> None:
        self._app, self._hosts = app, frozenset(hosts)
        self.token = secrets.token_urlsafe(24) if with_token else None
        self._session = secrets.token_urlsafe(24)
        # A browser sends a cookie to all ports of a host, so two servers need two names.
        self.cookie = f"rlprof_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a websocket
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = self._refusal(scope)
        if answer is not None:
            await answer(scope, receive, _protected(send))
            return
        await self._app(scope, _limited(receive), _protected(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return _refused(403, "This server has another name.")
        method: str = scope["method"]
        if method not in ("GET", "HEAD", "POST"):
            return _refused(405, "Only GET and POST are answered.")
        if not _is_short(headers, scope):
            return _refused(413, "The request is too large.")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        navigates = headers.get("sec-fetch-mode") == "navigate" and method == "GET"
        if origin is not None and origin != f"http://{hosts[0]}":
            return _refused(403, "Requests from other pages are refused.")
        if site not in (None, "same-origin", "none") and not navigates:
            return _refused(403, "Requests from other pages are refused.")
        if method == "POST" and origin is None:
            return _refused(403, "Requests from other pages are refused.")
        if self.token is None:
            return None
        given = [value for name, value in parse_qsl(scope["query_string"].decode("latin-1")) if name == "token"]
        if given and method == "GET" and _same(given[0], self.token):
            return self._exchanged(scope, site)
        cookie = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        return None if _same(cookie, self._session) else _refused(403, REFUSED)

    def _is_own(self, host: str) -> bool:
        """True for one of the names, or for any address of a machine if one of the names is `*`. The port may be
        another one, which is forwarded to this one: an attacker's page cannot choose the name, and that is enough."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        written = f"[{name}]" if ":" in name else name
        if host.lower() not in (written, f"{written}:{port}"):
            return False
        return name in self._hosts or ("*" in self._hosts and _is_address(name))

    def _exchanged(self, scope: Scope, site: str | None) -> Response:
        """The same address without the token, and the cookie."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # One slash at the start: two would name another server. Browsers read a backslash as a slash.
        path = "/" + quote(scope["path"].lstrip("/"))
        target = f"{path}?{rest}" if rest else path
        answer: Response
        if site in (None, "none", "same-origin"):
            answer = RedirectResponse(target, status_code=303)
        else:
            # After a link from another page, as in a terminal inside a browser, the redirected request would not have
            # the cookie. A page that goes on by itself has it.
            answer = HTMLResponse(element("meta", http_equiv="refresh", content=f"0;url={target}"))
        answer.set_cookie(self.cookie, self._session, httponly=True, samesite="strict", path="/")
        return answer


def host_names(host: str) -> list[str]:
    """The names that a server on this address may be called."""
    local = ["127.0.0.1", "localhost", "::1"]
    if is_loopback(host):
        return [*local, host]
    own = [socket.gethostname().lower(), socket.gethostname().lower().partition(".")[0]]
    # With all interfaces, it may be called any address: rebinding needs a name.
    return [*local, *own, "*" if host in ("0.0.0.0", "::") else host.lower()]


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_short(headers: Headers, scope: Scope) -> bool:
    head = sum(len(name) + len(value) for name, value in headers.raw)
    if head + len(scope["path"]) + len(scope["query_string"]) > MOST_HEAD:
        return False
    length = headers.get("content-length", "0")
    return length.isascii() and length.isdigit() and len(length) < 10 and int(length) <= MOST_BODY


def _same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _refused(status: int, sentence: str) -> Response:
    return PlainTextResponse(sentence + "\n", status_code=status)


def _protected(send: Send) -> Send:
    """Add the headers that every answer has. Policies and caching that the answer sets itself stay."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("content-security-policy", POLICY)
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending


def _limited(receive: Receive) -> Receive:
    """Cut off a body that has no length and does not end."""
    taken = 0

    async def receiving() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        return {"type": "http.disconnect"} if taken > MOST_BODY else message

    return receiving
