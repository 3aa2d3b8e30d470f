"""Connections that send nothing neither stay nor stop the server."""

from __future__ import annotations

import re
import resource
import socket
import subprocess
import sys
from pathlib import Path

import h11
import pytest
from serving import Client, serving, until

from rlprof.serve import connections
from rlprof.serve.connections import Connection, most_connections


def closed(connection: socket.socket) -> bool:
    connection.settimeout(30)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_a_connection_without_a_request_is_closed(runs, monkeypatch, sent):
    monkeypatch.setattr(Connection, "head_seconds", 0.2)
    with serving(runs) as served, socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(sent)
        assert closed(connection)


def test_a_connection_with_half_of_a_second_request_is_closed(runs, monkeypatch):
    monkeypatch.setattr(Connection, "head_seconds", 0.2)
    with serving(runs) as served, socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode())
        assert connection.recv(1) == b"H"
        connection.sendall(b"GET /")
        while connection.recv(1 << 16):
            pass


def test_a_stream_is_not_limited_by_the_time_for_its_head(served, client):
    connection = client.request("GET", "/events")
    stream = connection.getresponse()
    until(lambda: stream.readline().startswith(b"data: "))
    timers = [one._timer for one in served.server.server_state.connections if one.conn.their_state is not h11.IDLE]
    assert timers == [None]
    stream.close()
    connection.close()


def test_connections_beyond_the_limit_are_closed(runs, monkeypatch):
    monkeypatch.setattr(connections, "MOST", 10)
    with serving(runs) as served:
        opened = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(40)]
        for connection in opened[10:]:
            assert closed(connection)
        for connection in opened:
            connection.close()
        until(lambda: not served.server.server_state.connections)
        assert Client(served).log_in().get("/").status == 200


def test_the_limit_leaves_file_descriptors_for_sessions(monkeypatch):
    for files, limit in ((1024, 512), (256, 160), (64, 8), (resource.RLIM_INFINITY, 512)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert most_connections() == limit


FEW = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
from rlprof.cli.main import main
sys.argv = ["rlprof", "serve", sys.argv[1], "--port", "0"]
main()
"""


@pytest.mark.long
def test_with_few_file_descriptors_it_complains_once_and_goes_on(runs: Path, tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    with errors.open("wb") as opened_errors:
        process = subprocess.Popen([sys.executable, "-c", FEW, str(runs)], stderr=opened_errors)
    try:
        port = int(until(lambda: re.search(r"http://127.0.0.1:(\d+)/", errors.read_text()))[1])
        opened = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(60)]
        until(lambda: closed(opened[-1]))
        for connection in opened:
            connection.close()

        def answers() -> bool:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                return connection.recv(12) == b"HTTP/1.1 403"

        until(answers)
    finally:
        process.terminate()
        process.wait(30)
    said = errors.read_text()
    assert "Traceback" not in said
    assert len(said) < 1_000
