"""Small traces from large ones: what is kept is kept byte for byte, and whole."""

from __future__ import annotations

import gzip
import io
import json

import pytest
from traces import event, real_traces, unpacked, written

from rlprof.errors import RlprofError
from rlprof.trace.analysis.host import Host
from rlprof.trace.analysis.selection import selected
from rlprof.trace.columns import ABSENT
from rlprof.trace.cut import write_cut
from rlprof.trace.read import read_trace


def cut(path, steps=(), phases=()):
    """The events of a cut, and all of the file's."""
    trace = read_trace(path, places=True)
    out = io.BytesIO()
    write_cut(trace, selected(trace, steps, phases), {"note": "cut"}, out)
    made = json.loads(out.getvalue())
    assert made["rlprof_cut"] == {"note": "cut"}
    return made["traceEvents"], json.loads(unpacked(path))["traceEvents"]


def two_steps():
    return [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
        event("ProfilerStep#4", 0, 100, "user_annotation"),
        event("update", 50, 50, "user_annotation"),
        event("aten::mm", 60, 10),
        event("cudaLaunchKernel", 62, 3, "cuda_runtime", correlation=7),
        event("aten::relu", 10, 5),
        event("ProfilerStep#5", 100, 100, "user_annotation"),
        event("äöü aten::mm", 110, 10),
        event("cudaLaunchKernel", 111, 3, "cuda_runtime", correlation=8),
        event("late kernel", 130, 20, "kernel", pid=0, tid=7, correlation=7, device=0),
        event("kernel", 160, 20, "kernel", pid=0, tid=7, correlation=8, device=0),
        {"ph": "s", "id": 7, "pid": 1, "tid": 1, "ts": 62, "cat": "ac2g", "name": "ac2g"},
        {"ph": "f", "id": 7, "pid": 0, "tid": 7, "ts": 130, "cat": "ac2g", "name": "ac2g", "bp": "e"},
        {"ph": "s", "id": 8, "pid": 1, "tid": 1, "ts": 111, "cat": "ac2g", "name": "ac2g"},
        {"ph": "f", "id": 8, "pid": 0, "tid": 7, "ts": 160, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    ]


def names(events):
    return [item["name"] if item["ph"] != "s" and item["ph"] != "f" else (item["ph"], item["id"]) for item in events]


@pytest.mark.parametrize("name", ["plain.json", "packed.json.gz"])
def test_a_step_comes_with_what_it_launched_and_its_arrows(tmp_path, name):
    made, _ = cut(written(tmp_path, two_steps(), name), steps=[4])
    assert names(made) == [
        "process_name", "ProfilerStep#4", "update", "aten::mm", "cudaLaunchKernel", "aten::relu", "late kernel",
        ("s", 7), ("f", 7),
    ]  # fmt: skip


def test_a_phase_comes_with_what_is_around_it(tmp_path):
    made, _ = cut(written(tmp_path, two_steps()), phases=["update"])
    assert names(made) == [
        "process_name", "ProfilerStep#4", "update", "aten::mm", "cudaLaunchKernel", "late kernel", ("s", 7), ("f", 7),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"steps": [9]}, "has no step 9. It has 4, 5"),
        ({"phases": ["loss"]}, "has no phase loss. It has update"),
        ({"steps": [5], "phases": ["update"]}, "the chosen steps do not contain the chosen phases"),
    ],
)
def test_what_is_not_there_is_named_beside_what_is(tmp_path, chosen, message):
    with pytest.raises(RlprofError, match=message):
        cut(written(tmp_path, two_steps()), **chosen)


@real_traces()
def test_every_event_of_a_cut_stands_in_the_original(path, tmp_path):
    steps = Host.of(read_trace(path)).steps
    if not steps:
        pytest.skip("it has no steps")
    number = int(steps[0].name.rpartition("#")[2])
    made, original = cut(path, steps=[number])
    known = {json.dumps(item, sort_keys=True) for item in original}
    assert all(json.dumps(item, sort_keys=True) in known for item in made)
    assert 1 < len(made) < len(original)
    small = tmp_path / "small.json.gz"
    small.write_bytes(gzip.compress(json.dumps({"traceEvents": made}).encode()))
    assert steps[0].name in [step.name for step in Host.of(read_trace(small)).steps]


@real_traces()
def test_places_are_where_the_events_stand(path):
    trace, text = read_trace(path, places=True), unpacked(path)
    events = json.loads(text)["traceEvents"]
    assert len(events) == len(trace.at)
    for row in range(0, len(events), max(1, len(events) // 200)):
        at, size = int(trace.at[row]), int(trace.size[row])
        assert json.loads(text[at : at + size]) == events[row]
        expected = ABSENT if "ts" not in events[row] else pytest.approx(float(events[row]["ts"]) * 1000, abs=600)
        assert trace.start[row] == expected
