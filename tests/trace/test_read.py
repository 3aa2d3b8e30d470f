"""A file becomes columns; what is wrong with it is one sentence, or a counted warning where the rest can be used."""

from __future__ import annotations

import gzip
import json
import threading

import numpy as np
import pytest
from traces import event, real_traces, unpacked, written

from rlprof.errors import UnreadableError
from rlprof.trace.kinds import Kind
from rlprof.trace.read import read_trace


def names(trace, kind):
    return trace.names(trace.rows(kind))


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_events_have_kinds_names_times_and_arguments(tmp_path, name):
    events = [
        event("aten::add", 10.5, 2, correlation=7),
        event("sgemm", "11.25", 0.5, cat="kernel", tid="stream 7", correlation=7, stream=7),
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {"ph": "s", "id": 7, "ts": 11, "pid": 1, "tid": 1, "cat": "ac2g", "name": "ac2g"},
    ]
    trace = read_trace(written(tmp_path, events, name, distributedInfo={"rank": 3}))
    (operator,), (kernel,) = trace.rows(Kind.OPERATOR), trace.rows(Kind.KERNEL)
    assert trace.header["distributedInfo"] == {"rank": 3}
    assert trace.names(np.array([operator, kernel])) == ["aten::add", "sgemm"]
    assert trace.start[[operator, kernel]].tolist() == [10_500, 11_250]
    assert trace.end[[operator, kernel]].tolist() == [12_500, 11_750]
    assert trace.arg("correlation").at(np.array([operator, kernel])).tolist() == [7, 7]
    assert trace.arg("stream").at(np.array([operator, kernel])).tolist() == [-1, 7]
    assert trace.problems == ()


def test_old_names_of_categories_are_known(tmp_path):
    categories = ["Operator", "Kernel", "Memcpy", "Memset", "Runtime", "gpu_memcpy", "cuda_driver", "Trace"]
    trace = read_trace(written(tmp_path, [event(cat=category) for category in categories]))
    assert trace.kind.tolist() == [
        Kind.OPERATOR, Kind.KERNEL, Kind.COPY, Kind.FILL, Kind.RUNTIME, Kind.COPY, Kind.RUNTIME, Kind.OTHER,
    ]  # fmt: skip


def test_a_step_is_an_annotation_whatever_its_category(tmp_path):
    events = [event("ProfilerStep#3", cat=category) for category in ("Operator", "cpu_op", "user_annotation")]
    assert names(read_trace(written(tmp_path, events)), Kind.ANNOTATION) == ["ProfilerStep#3"] * 3


def test_events_that_cannot_be_used_are_left_out_and_counted(tmp_path):
    events = [event("a"), event("b", dur=-2), {"ph": "X", "name": "c"}, 7, None, event("d", ts=None)]
    trace = read_trace(written(tmp_path, events))
    assert names(trace, Kind.OPERATOR) == ["a"]
    assert trace.problems == (
        "2 events without a timestamp left out",
        "1 event with a negative duration left out",
        "2 entries other than JSON objects left out",
    )


def packed(data):
    return gzip.compress(data, mtime=0)


TEXT = json.dumps({"traceEvents": [event(str(i)) for i in range(100)]}).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty. The profiler"),
        (packed(b""), "is empty. The profiler"),
        (b"hello", "is not a trace: its text is not JSON at byte 0"),
        (b"  \n", "is not a trace: its text ends in the middle"),
        (b'{"a": 1}', "is not a trace: it has no traceEvents"),
        (b'{"traceEvents": 5}', "is not a trace: it has no traceEvents"),
        (b'{"traceEvents": []}', "has no events. A torch.profiler schedule"),
        (b'{"traceEvents": [{"ph": "X", "na', "has no events: its text ends in the middle"),
        (packed(TEXT)[:9], "is not a trace: its compressed data ends too early"),
        (packed(TEXT)[:10] + b"garbage" * 9, "is not a trace: its compression is broken"),
        (bytes(range(256)) * 10, "is not a trace: its text is not JSON at byte 0"),
    ],
)
def test_what_cannot_be_used_at_all_is_one_sentence(tmp_path, data, message):
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    with pytest.raises(UnreadableError) as raised:
        read_trace(path)
    assert str(raised.value).startswith(f"{path} {message}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (TEXT[:3000], "its text ends in the middle, at byte 3,000; the {} events before that are used"),
        (packed(TEXT)[:-30], "its compressed data ends too early after "),
        (TEXT[:3000] + b"}}}}", "its text is not JSON at byte "),
    ],
)
def test_the_beginning_of_a_broken_file_is_used(tmp_path, data, message):
    path = tmp_path / "cut.json"
    path.write_bytes(data)
    trace = read_trace(path)
    (problem,) = trace.problems
    count = len(trace.rows(Kind.OPERATOR))
    assert 10 < count < 100
    assert problem.startswith(message.format(count))
    assert names(trace, Kind.OPERATOR) == [str(i) for i in range(count)]


def test_several_members_of_a_gzip_file_are_one_text(tmp_path):
    path = tmp_path / "members.json.gz"
    path.write_bytes(packed(TEXT[:1000]) + packed(TEXT[1000:]))
    trace = read_trace(path)
    assert len(trace.rows(Kind.OPERATOR)) == 100
    assert trace.problems == ()


def test_a_file_that_does_not_exist_is_named(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(UnreadableError, match=r"cannot be read: (No such file|Is a directory)"):
            read_trace(path)


def test_progress_is_reported_and_no_thread_stays(tmp_path):
    reported = []
    path = written(tmp_path, [event(str(i)) for i in range(5000)], "a.json.gz")
    before = threading.active_count()
    read_trace(path, lambda done, size: reported.append((done, size)))
    assert reported[-1] == (path.stat().st_size,) * 2
    assert threading.active_count() == before

    def stop(done, size):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_trace(path, stop)
    assert threading.active_count() == before


@real_traces()
def test_a_real_trace_has_the_kinds_of_its_categories(path):
    events = json.loads(unpacked(path))["traceEvents"]
    trace = read_trace(path)
    for kind, categories in (
        (Kind.KERNEL, ("kernel", "Kernel")),
        (Kind.COPY, ("gpu_memcpy", "Memcpy")),
        (Kind.RUNTIME, ("cuda_runtime", "Runtime", "cuda_driver")),
    ):
        expected = [item["name"] for item in events if item["ph"] == "X" and item.get("cat") in categories]
        assert names(trace, kind) == expected
    total = sum(item["dur"] for item in events if item["ph"] == "X" and item.get("cat") in ("kernel", "Kernel"))
    assert trace.duration[trace.rows(Kind.KERNEL)].sum() == pytest.approx(1000 * total, abs=1000)
    assert trace.problems == ()
