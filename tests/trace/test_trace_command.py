"""`rlprof trace`, as people type it."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from cli.test_commands import rlprof
from traces import event, real_traces, written


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


def test_the_text_has_steps_idle_time_advice_and_copies(trace):
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
        "1 entry other than JSON objects left out",
        "1 operator or call outlasts its caller",
    ):
        assert f"Warning: {warning}" in done.stdout
    whole = json.dumps({"traceEvents": events[:1] * 50}).encode()
    (tmp_path / "half.json").write_bytes(whole[: len(whole) // 2])
    done = rlprof("trace", "summary", tmp_path / "half.json")
    assert done.returncode == 0
    assert re.search(r"Warning: its text ends in the middle, at byte [\d,]+; the 2\d events before", done.stdout)


@pytest.mark.long
def test_diff_names_the_phase_and_takes_several_traces_per_side(tmp_path):
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
    assert (
        "No difference beyond noise. A step takes 4.00 ms in A"
        in rlprof("trace", "diff", "-a", a1, "-a", a2, "-b", a2).stdout
    )
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
    assert f"--output {trace} would overwrite {trace}" in own.stderr


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
