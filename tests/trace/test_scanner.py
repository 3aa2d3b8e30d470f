"""The C scanner and its twin find the same, wherever the text is cut into pieces, and what Python's json finds."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise

import numpy as np
import pytest
from fakes import CORES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from traces import event, real_traces, unpacked

from rlprof.trace import twin

NUMBERS, TEXTS = ("correlation", "External id", "bytes"), ("Input Dims", "name")
ABSENT = -(2**63)


def scanner_of(core):
    if core == "python":
        return twin.Scanner(NUMBERS, TEXTS)
    from rlprof.trace import _scan

    return _scan.Scanner(NUMBERS, TEXTS)


def scanned(core, text, cuts=()):
    """All results of a scanner, with texts in the place of their indices."""
    scanner = scanner_of(core)
    for first, last in pairwise([0, *sorted(cuts), len(text)]):
        if not scanner.feed(text[first:last]):
            break
    columns, args = scanner.columns()
    ends = np.frombuffer(columns["text_ends"], np.uint64).tolist()
    raw = bytes(columns["texts"])
    texts = [json.loads(raw[first:last]) for first, last in pairwise([0, *ends])]
    texts.append(None)
    found = {"phase": [chr(byte) for byte in bytes(columns["phase"])]}
    for name in ("category", "name", "process", "thread"):
        found[name] = [texts[i] for i in np.frombuffer(columns[name], np.int32)]
    for name in ("start", "duration"):
        found[name] = np.frombuffer(columns[name], np.int64).tolist()
    for key, (rows, values) in args.items():
        numbers = np.frombuffer(values, np.int64).tolist()
        meant = [texts[i] for i in numbers] if key in TEXTS else numbers
        found[f"args.{key}"] = np.frombuffer(rows, np.int32).tolist(), meant
    header = json.loads(b"{" + bytes(columns["header"]) + b"}")
    counts = scanner.rows, scanner.odd, scanner.ended, scanner.has_events, scanner.broken_at >= 0
    return found, header, counts


def nanoseconds(text):
    return int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_UP))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "i", "M", "s", "f", "", "XX", 3]),
        "cat": st.sampled_from(["cpu_op", "kernel", 'Ünï "code" \\']),
        "name": st.text(max_size=12),
        "pid": st.integers(0, 9) | st.text(max_size=4),
        "tid": st.integers(0, 2**40) | st.text(max_size=4),
        "ts": st.integers(-(10**15), 10**15) | st.sampled_from(["12.5", None, True, []]),
        "dur": st.integers(-5, 10**9),
        "id": VALUES,
        "args": st.dictionaries(st.sampled_from([*NUMBERS, *TEXTS, "other"]), VALUES, max_size=5) | VALUES,
    },
)


@pytest.mark.long
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(EVENTS | VALUES, max_size=8), st.dictionaries(st.text(max_size=5), VALUES, max_size=3), st.data())
def test_both_find_the_same_wherever_the_text_is_cut(events, header, data):
    header.pop("traceEvents", None)
    indent = data.draw(st.sampled_from([None, 1]))
    text = json.dumps({**header, "traceEvents": events}, indent=indent, ensure_ascii=data.draw(st.booleans())).encode()
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    expected = scanned("python", text)
    assert expected[2][2:] == (True, True, False)
    assert expected[1] == header
    for core in CORES:
        assert scanned(core, text, cuts) == expected


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(EVENTS, max_size=5), st.data())
def test_what_comes_before_a_cut_is_whole(events, data):
    text = json.dumps({"a": 1, "traceEvents": events}).encode()
    size = data.draw(st.integers(0, len(text) - 1))
    whole = scanned("python", text)[0]
    for core in CORES:
        found, _, counts = scanned(core, text[:size])
        assert counts[2:] == (False, size >= text.index(b"[") + 1, False)
        for name in ("name", "start", "process"):
            assert found[name] == whole[name][: len(found[name])]
        assert len({len(found[name]) for name in ("phase", "category", "name", "thread", "start", "duration")}) == 1


TIMES = (
    "1", "0", "0.001", "1693342385064.5554", "1693342385064555.4445", "1.5e3", "2E-3", "-7.25", "9e15", "0.0005",
    "1e-9",
)  # fmt: skip


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("number", TIMES)
def test_times_are_exact_to_the_nanosecond(core, number):
    text = f'{{"traceEvents":[{{"ph":"X","ts":{number},"dur":"{number}"}}]}}'.encode()
    found, _, _ = scanned(core, text)
    assert found["start"] == found["duration"] == [nanoseconds(number)]


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("number", ["1e300", "99999999999999999999", "null", '"x"', "true", '""', "[1]", '"1.2.3"'])
def test_what_is_no_time_is_absent(core, number):
    text = f'{{"traceEvents":[{{"ph":"X","ts":{number},"name":"n"}}]}}'.encode()
    found, _, counts = scanned(core, text)
    assert found["start"] == [ABSENT]
    assert counts[2]


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    "text", [b"hello", b'{"traceEvents":[{"ph":"X"},{"ph" 3}]}', b'{"a" 1}', b'{"traceEvents":[{x}]}']
)
def test_text_that_is_not_json_is_reported(core, text):
    _, _, counts = scanned(core, text)
    assert counts[4]


@pytest.mark.parametrize("core", CORES)
def test_an_array_of_events_is_a_trace(core):
    found, _, counts = scanned(core, json.dumps([event("a"), event("b")]).encode())
    assert found["name"] == ["a", "b"]
    assert counts == (2, 0, True, True, False)


@pytest.mark.parametrize("core", CORES)
def test_values_larger_than_many_pieces_are_read(core):
    large = {"notes": ["x" * 50] * 3000}
    text = json.dumps({"before": large, "traceEvents": [event("a", **{"Input Dims": large})]}).encode()
    found, header, _ = scanned(core, text, range(0, len(text), 1000))
    assert header == {"before": large}
    assert found["args.Input Dims"] == ([0], [large])


def test_keys_that_it_cannot_hold_are_refused():
    _scan = pytest.importorskip("rlprof.trace._scan")
    for numbers in (("x" * 100,), tuple(f"key {i}" for i in range(100)), ("",)):
        with pytest.raises(ValueError, match="keys"):
            _scan.Scanner(numbers, ())


@pytest.mark.long
@real_traces()
def test_a_real_trace_is_what_pythons_json_says(path):
    text = unpacked(path)
    events = [item for item in json.loads(text, parse_float=str)["traceEvents"] if item["ph"] not in "stf"]
    found, _, counts = scanned(CORES[0], text, range(0, len(text), 100_003))
    assert counts[0] == len(events)
    assert found["name"] == [item.get("name") for item in events]
    assert found["category"] == [item.get("cat") for item in events]
    assert found["start"] == [nanoseconds(item["ts"]) if "ts" in item else ABSENT for item in events]
    assert found["duration"] == [nanoseconds(item["dur"]) if "dur" in item else ABSENT for item in events]
    rows = [row for row, item in enumerate(events) if "correlation" in item.get("args", {})]
    assert found["args.correlation"] == (rows, [events[row]["args"]["correlation"] for row in rows])
