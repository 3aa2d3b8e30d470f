"""`rlprof trace`, as people type it."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from cli.test_commands import rlprof
from traces import event, real_traces, written

from rlprof.trace.viewer import Viewer, perfetto_folder


@pytest.fixture
def trace(tmp_path):
    return written(
        tmp_path,
        [
            event("ProfilerStep#3", 0, 1000, "user_annotation"),
            event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 600, "user_annotation"),
            event("update", 600, 400, "user_annotation"),
            event("aten::mm", 650, 200),
            event("cudaLaunchKernel", 660, 5, "cuda_runtime", correlation=1),
            event("gemm", 670, 300, "kernel", pid=0, tid=7, device=0, correlation=1),
            event("Memcpy HtoD (Pageable -> Device)", 970, 20, "gpu_memcpy", pid=0, tid=7, device=0, bytes=4096),
        ],
        "one.pt.trace.json.gz",
        deviceProperties=[{"id": 0, "name": "Tesla"}],
    )


def test_the_text_says_what_there_is(trace):
    done = rlprof("trace", "summary", trace)
    assert (done.returncode, done.stderr) == (0, "")
    for sentence in (
        "1 step of 1.00 ms.",
        "GPU 0 (Tesla): busy 32.0%; idle mostly because the host waits for data.",
        "60.0% of the time is spent waiting for data.",
        "host to device: Memc",
    ):
        assert sentence in done.stdout


def test_json_and_html_have_the_same_figures(trace, tmp_path):
    done = rlprof("trace", "summary", trace, "--format", "json")
    (found,) = json.loads(done.stdout)["traces"]
    assert (found["devices"][0]["busy"], found["window"]) == (320_000, 1_000_000)
    page = tmp_path / "page.html"
    assert rlprof("trace", "summary", trace, "-o", page).returncode == 0
    text = page.read_text()
    assert "32.0%" in text
    assert "<script" not in text


def test_several_ranks_are_compared_and_missing_ones_named(tmp_path):
    def rank(number, length):
        step = event("ProfilerStep#1", 0, length, "user_annotation")
        info = {"rank": number, "world_size": 4}
        return written(tmp_path, [step], f"rank{number}.json", distributedInfo=info)

    done = rlprof("trace", "summary", rank(0, 100), rank(2, 150))
    assert done.returncode == 0
    assert "rank 2: rank2.json takes 50.0% longer per step than rank 0: rank0.json." in done.stdout
    assert "Traces of ranks 1, 3 are missing." in done.stdout


@pytest.mark.long
def test_a_folder_a_pattern_and_nothing(tmp_path, trace):
    assert rlprof("trace", "summary", tmp_path).returncode == 0
    assert rlprof("trace", "summary", f"{tmp_path}/*.json.gz").returncode == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    for given in (empty, f"{tmp_path}/no*.json", tmp_path / "absent.json"):
        done = rlprof("trace", "summary", given)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1


BROKEN = {
    "empty.json": b"",
    "no_json.json": b"hello",
    "no_events.json": b'{"schemaVersion": 1}',
    "nothing.json": b'{"traceEvents": []}',
    "cut.json.gz": gzip.compress(b'{"traceEvents": [{"ph": "X", "ts')[:-12],
    "binary.json": bytes(range(256)) * 10,
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("command", ["summary", "diff", "cut"])
def test_what_cannot_be_used_is_one_sentence(tmp_path, name, command):
    path = tmp_path / name
    path.write_bytes(BROKEN[name])
    more = {"summary": (), "diff": (path,), "cut": ("--step", "1", "-o", tmp_path / "out.json")}[command]
    done = rlprof("trace", command, path, *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert name in done.stderr
    assert not (tmp_path / "out.json").exists()


@pytest.mark.long
def test_what_is_partly_usable_is_used_with_a_counted_warning(tmp_path):
    events = [
        event("ProfilerStep#1", 0, 100, "user_annotation"),
        event("aten::mm", 10, -5),
        {"ph": "X", "cat": "cpu_op", "name": "no time", "pid": 1, "tid": 1, "dur": 3},
        7,
        event("aten::overlap", 50, 20),
        event("aten::overlap", 60, 20),
    ]
    done = rlprof("trace", "summary", written(tmp_path, events))
    assert done.returncode == 0
    for warning in (
        "1 event without a timestamp left out",
        "1 event with a negative duration left out",
        "1 event left out because they are not JSON objects",
        "1 operator or call ends after its caller",
    ):
        assert f"Warning: {warning}" in done.stdout
    whole = json.dumps({"traceEvents": events[:1] * 50}).encode()
    (tmp_path / "half.json").write_bytes(whole[: len(whole) // 2])
    done = rlprof("trace", "summary", tmp_path / "half.json")
    assert done.returncode == 0
    assert re.search(r"Warning: its text ends in the middle, at byte [\d,]+; the 2\d events before", done.stdout)


@pytest.mark.long
def test_diff_says_which_phase_and_takes_several_a_side(tmp_path):
    def made(name, loading):
        steps = [
            item
            for start in (0, 5000)
            for item in (
                event(f"ProfilerStep#{start}", start, 1000 + loading, "user_annotation"),
                event("enumerate(DataLoader)#Iter.__next__", start, loading, "user_annotation"),
            )
        ]
        return written(tmp_path, steps, f"{name}.json")

    a1, a2, b1 = made("a1", 3000), made("a2", 3010), made("b1", 10)
    done = rlprof("trace", "diff", a1, b1)
    assert "A step is faster in B: 4.00 ms in A, 1.01 ms in B, 2.99 ms (74.8%) less." in done.stdout
    assert "The cause is data_loading, which explains 100.0% of the difference" in done.stdout
    done = rlprof("trace", "diff", "--before", a1, "--before", a2, "--after", b1, "--format", "json")
    found = json.loads(done.stdout)
    # 12.706 times the standard deviation of 7.07 us, times the root of 1.5.
    assert (found["unit"], found["step"]["noise"]) == ("runs", pytest.approx(110_037, rel=1e-4))
    assert json.loads(rlprof("trace", "diff", f"{a1},{a2}", b1, "--format", "json").stdout) == found
    assert "Noise: a step takes 4.00 ms in A" in rlprof("trace", "diff", "-a", a1, "-a", a2, "-b", a2).stdout
    assert rlprof("trace", "diff", a1, a2, b1).returncode == 2
    assert rlprof("trace", "diff", a1).returncode == 2


@pytest.mark.long
def test_cut_writes_a_trace_that_is_read_again(trace, tmp_path):
    small = tmp_path / "small.json.gz"
    done = rlprof("trace", "cut", trace, "--step", "3", "--phase", "update", "-o", small)
    assert done.returncode == 0
    assert re.search(r"wrote .*small.json.gz: 6 of 7 events", done.stderr)
    assert "aten::mm" in rlprof("trace", "summary", small).stdout
    assert rlprof("trace", "cut", trace, "-o", small).returncode == 2
    own = rlprof("trace", "cut", trace, "--step", "3", "-o", trace)
    assert own.returncode == 2
    assert "Choose another name for --output" in own.stderr


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
            assert served == Path(trace).read_bytes()
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
    for asked_for in (f"/{viewer.token}/{path}", f"/{viewer.token}/trace/{viewer.trace.name}", None) * 3:
        with socket.create_connection(("127.0.0.1", viewer.server_port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets
            request = (
                f"GET {asked_for} HTTP/1.1\r\nHost: 127.0.0.1:{viewer.server_port}\r\n\r\n" if asked_for else "GET"
            )
            connection.sendall(request.encode())
            if asked_for:
                connection.recv(1)
    assert requested(viewer, "GET", f"/{viewer.token}/")[0].status == 200, "it goes on"
    end = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert capfd.readouterr().err == ""


def test_open_refuses_what_is_no_file(tmp_path):
    done = rlprof("trace", "open", tmp_path / "absent.json")
    assert done.returncode == 2
    assert "is not a file" in done.stderr


@pytest.mark.long
@real_traces()
def test_every_real_trace_has_a_summary_in_every_format(path):
    done = rlprof("trace", "summary", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nan" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120
