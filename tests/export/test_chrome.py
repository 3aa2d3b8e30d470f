"""The Chrome trace, read by the rules of the trace event format, as a viewer reads it."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict

import pytest
from timelines import ITERATION, MS, NASTY, ORIGIN, SPANS, STARTED, Kept, exported, training

from rlprof import SpanCost
from rlprof.export.chrome import write_chrome
from rlprof.session.records import Mark


def trace(session):
    made, remark = exported(session, write_chrome)
    return json.loads(made), remark


@pytest.fixture
def made(tmp_path):
    return trace(training(tmp_path))[0]


def of(made, phase, **fields):
    events = [event for event in made["traceEvents"] if event["ph"] == phase]
    return [event for event in events if all(event.get(key) == value for key, value in fields.items())]


def tracks(made):
    return {event["args"]["name"]: event["tid"] for event in of(made, "M", name="thread_name")}


def spans(made):
    return [event for event in of(made, "X") if event["tid"] != tracks(made)["iterations"]]


def test_every_span_is_one_complete_event(made):
    assert len(spans(made)) == SPANS
    counts = Counter(event["name"] for event in spans(made))
    assert counts == dict.fromkeys([*NASTY, "collect", "env_step", "env_reset", "update", "backward", "clip"], 3)
    assert {event["cat"] for event in spans(made) if event["name"] == "env_step"} == {"environment"}
    assert {event["cat"] for event in spans(made) if event["name"] == "backward"} == {"learning"}


def test_every_lane_has_a_track_with_its_name(made):
    assert set(tracks(made)) == {"iterations", "main", 'env "0" <b>\n'}
    on = defaultdict(set)
    for event in spans(made):
        on[event["tid"]].add(event["name"])
    assert on[tracks(made)['env "0" <b>\n']] == {"env_step", "env_reset"}
    assert of(made, "M", name="process_name")[0]["args"]["name"] == 'rlprof: run "<b>"'


def test_spans_of_a_track_nest_and_never_cross(made):
    by_track = defaultdict(list)
    for event in of(made, "X"):
        by_track[event["tid"]].append((event["ts"], -event["dur"]))
    for events in by_track.values():
        ends = []
        for start, minus in sorted(events):
            while ends and ends[-1] <= start + 1e-9:
                ends.pop()
            assert not ends or start - minus <= ends[-1] + 1e-9
            ends.append(start - minus)


def test_nanoseconds_are_kept_as_fractions_of_a_microsecond(tmp_path):
    kept = Kept(tmp_path)
    kept.tick(36_000_000_000_000)  # ten hours
    kept.work("env_step", 1)
    kept.tick(122)
    kept.work("backward", 1_001)
    made, _ = trace(kept.session())
    assert {event["ts"]: event["dur"] for event in spans(made)} == {36_000_000_000.0: 0.001, 36_000_000_000.123: 1.001}


def test_iterations_have_their_steps(made):
    iterations = sorted(of(made, "X", cat="iteration"), key=lambda event: event["ts"])
    assert [event["name"] for event in iterations] == ["iteration 1", "iteration 2", "iteration 3"]
    assert [event["dur"] for event in iterations] == [ITERATION / 1000] * 3
    assert [event["args"]["steps"] for event in iterations] == [100, 200, 300]
    assert iterations[1]["args"]["steps_per_second"] == pytest.approx(200 / (ITERATION / 1e9))


@pytest.mark.parametrize("timeline", [0, 1024])
def test_the_ledgers_counters_of_an_iteration_sum_to_its_wall_time(tmp_path, timeline):
    made, _ = trace(training(tmp_path, timeline, SpanCost(inside_ns=1_000, outside_ns=500)))
    sums = Counter()
    for event in of(made, "C"):
        if event["name"].startswith("ledger: "):
            sums[event["ts"]] += event["args"]["ms"]
    iterations = {event["ts"]: event["dur"] / 1000 for event in of(made, "X", cat="iteration")}
    over = max(sums)
    assert sums.pop(over) == 0
    assert sums == pytest.approx(iterations)
    environment = [event["args"]["ms"] for event in of(made, "C", name="ledger: environment")]
    assert environment[:3] == pytest.approx([4, 4, 4], abs=0.01)


def test_cpu_and_memory_are_counters_where_they_were_measured(made):
    assert [event["args"]["MB"] for event in of(made, "C", name="RSS")] == [1, 2, 3]
    assert [event["args"]["% of a core"] for event in of(made, "C", name="CPU")] == [91, 92]
    assert of(made, "C", name="RSS")[0]["ts"] == ITERATION / 1000
    assert not of(made, "C", name="device busy")


def test_without_a_timeline_no_span_is_made_up(tmp_path):
    made, remark = trace(training(tmp_path, timeline=0))
    assert spans(made) == []
    assert len(of(made, "X", cat="iteration")) == 3
    assert made["otherData"]["spans_kept"] is False
    assert made["otherData"]["remark"] == remark
    assert "record(timeline=" in remark


def test_lost_spans_are_noted_in_the_file(tmp_path):
    kept = Kept(tmp_path, timeline=4)
    for _ in range(10):
        kept.work("env_step", 5)
    made, remark = trace(kept.session())
    assert len(spans(made)) == 4
    assert made["otherData"]["spans_lost"] == 6
    assert made["otherData"]["remark"] == remark


def test_what_began_before_the_recording_is_not_before_zero(tmp_path):
    kept = Kept(tmp_path)
    kept.iteration()
    with kept.profile("setup"):
        kept.tick(100)
    kept.iteration()
    session = kept.session()
    object.__setattr__(session.info, "origin", ORIGIN + 60)
    made, _ = trace(session)
    stamps = {event["name"]: event["ts"] for event in made["traceEvents"] if "ts" in event}
    assert stamps["setup"] == stamps["iteration 1"] == 0
    assert int(made["otherData"]["ts_0_unix_ns"]) == STARTED - 60
    counters = [event["ts"] for event in of(made, "C")]
    assert min(counters) == 0
    assert max(counters) == pytest.approx(0.1)


def test_spans_that_cross_are_on_a_track_beside_their_lanes(tmp_path):
    kept = Kept(tmp_path)
    kept.cross("a", "b", MS)
    made, _ = trace(kept.session())
    assert set(tracks(made)) == {"iterations", "main", "main (crossing spans 1)"}
    assert {event["dur"] for event in spans(made)} == {2000.0}


def test_marks_are_instants(tmp_path):
    kept = Kept(tmp_path)
    kept.work("env_step", 5_000)
    batch = kept.batch()
    batch.marks = [Mark(ORIGIN + 5_000, "warning", "careful")]
    kept.writer.write(batch)
    made, _ = trace(kept.session())
    (mark,) = of(made, "i")
    assert (mark["ts"], mark["name"], mark["args"]["text"]) == (5.0, "warning", "careful")


def test_an_empty_session_is_still_a_trace(tmp_path):
    made, _ = trace(Kept(tmp_path).session())
    assert {event["ph"] for event in made["traceEvents"]} == {"M"}


def test_every_figure_is_a_number(made):
    for event in made["traceEvents"]:
        assert isinstance(event["pid"], int)
        for key in ("ts", "dur"):
            assert 0 <= event.get(key, 0.0) < math.inf
