"""`rlprof serve` as a process: what it prints, and how it ends."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from sessions import rlprof


@contextmanager
def started(*words: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and what it has printed before it serves."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rlprof", "serve", *map(str, words)], stderr=subprocess.PIPE, text=True, bufsize=0
    )
    try:
        said = ""
        end = time.monotonic() + 60
        while "Ctrl-C" not in said:
            assert select.select([process.stderr], [], [], end - time.monotonic())[0], said
            part = os.read(process.stderr.fileno(), 4096).decode()
            assert part, said
            said += part
        yield process, said
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def address_in(said: str) -> str:
    found = re.search(r"http://\S+\?token=[\w-]{32,}", said)
    assert found is not None, said
    return found[0]


def stream_of(address: str) -> HTTPConnection:
    """An open stream of the page of all runs."""
    parts = urlsplit(address)
    connection = HTTPConnection(parts.netloc, timeout=30)
    connection.request("GET", f"/?{parts.query}")
    answer = connection.getresponse()
    answer.read()
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    connection.request("GET", "/events", headers={"Cookie": cookie})
    assert connection.getresponse().readline() == b"retry: 1000\n"
    return connection


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_ends_without_a_traceback(runs, stop):
    with started(runs, "--port", 0) as (process, said):
        address = address_in(said)
        assert address.startswith("http://127.0.0.1:")
        stream = stream_of(address)  # does not keep it from ending
        process.send_signal(stop)
        _, rest = process.communicate(timeout=60)
        assert "Traceback" not in said + rest
        stream.close()
        if stop is signal.SIGINT:
            assert process.returncode == 0


def test_other_machines_are_let_in_with_a_warning_only(runs):
    with started(runs, "--host", "0.0.0.0", "--port", 0) as (_, said):
        assert "warning: 0.0.0.0 can be reached from other machines" in said
        address_in(said)
    done = rlprof("serve", runs, "--host", "0.0.0.0", "--no-token", code=2)
    assert done.stderr.count("\n") == 1
    assert "--no-token" in done.stderr


def test_without_a_token_the_address_has_none(runs):
    with started(runs, "--no-token", "--port", 0) as (_, said):
        assert "token" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing"], "There is no folder missing."),
        ([".", "--host", "no.such.host.invalid"], "cannot be used"),
        (["--port", "99999"], "--port"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, words, said):
    done = rlprof("serve", *words, code=2, cwd=tmp_path)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_help_has_an_example():
    assert "rlprof serve --host 0.0.0.0 --port 9000" in rlprof("serve", "--help").stdout
