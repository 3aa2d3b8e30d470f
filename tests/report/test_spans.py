"""The timeline, nested: every span once, on a track where nothing crosses, below the span that was around it."""

from __future__ import annotations

import struct

import pytest
from written import Written

from rlprof.report.spans import NOT_KEPT, Spans
from rlprof.session.records import Batch


@pytest.fixture
def written(tmp_path):
    return Written(tmp_path)


def read(written) -> list[tuple[str, int, int, int, str | None]]:
    """(name, start, end, track, parent), in the order of their beginning."""
    with written.session() as session:
        spans = list(Spans(session))
    spans.sort(key=lambda span: (span.start, span.depth))
    return [
        (s.node.operation, s.start - 1_000, s.end - 1_000, s.track, s.parent and s.parent.node.operation) for s in spans
    ]


def test_children_lie_below_the_span_around_them(written):
    with written.profile("a"):
        written.tick(1)
        with written.profile("b"):
            written.tick(2)
            with written.profile("c"):
                written.tick(3)
        with written.profile("d"):
            written.tick(4)
    assert read(written) == [
        ("a", 0, 10, 0, None),
        ("b", 1, 6, 0, "a"),
        ("c", 3, 6, 0, "b"),
        ("d", 6, 10, 0, "a"),
    ]


def test_a_child_that_was_flushed_long_before_its_parent_finds_it(written):
    with written.profile("training"):
        for _ in range(3):
            with written.profile("env_step"):
                written.tick(5)
            written.flush()
    assert [row[4] for row in read(written)] == [None, "training", "training", "training"]


def test_spans_of_no_length_are_where_they_were(written):
    with written.profile("before"):
        pass
    with written.profile("long"):
        with written.profile("first"):
            pass
        written.tick(5)
        with written.profile("last"):
            pass
    with written.profile("after"):
        pass
    found = {row[0]: row[4] for row in read(written)}
    assert found == {"before": None, "long": None, "first": "long", "last": "long", "after": None}


def test_spans_that_cross_go_to_a_track_of_their_own(written):
    a, b = written.profile("a"), written.profile("b")
    with written.profile("outer"):
        a.__enter__()
        written.tick(5)
        b.__enter__()
        written.tick(5)
        a.__exit__(None, None, None)
        written.tick(5)
        b.__exit__(None, None, None)
    rows = {row[0]: row[1:] for row in read(written)}
    assert rows["outer"] == (0, 15, 0, None)
    assert rows["b"] == (5, 15, 0, "outer")
    assert rows["a"] == (0, 10, 1, None)


def test_where_the_parent_was_lost_the_next_one_out_is_taken(tmp_path):
    written = Written(tmp_path, timeline=2)
    with written.profile("outer"):
        with written.profile("middle"):
            with written.profile("inner"):
                written.tick(3)
            written.flush()
        for _ in range(5):
            with written.profile("other"):
                written.tick(1)
    assert {row[0]: row[4] for row in read(written)} == {"outer": None, "inner": "outer", "other": "outer"}


def test_lost_spans_are_counted_and_told(tmp_path):
    written = Written(tmp_path, timeline=8)
    for _ in range(1_000):
        with written.profile("env_step"):
            written.tick(1)
    with written.session() as session:
        spans = Spans(session)
        assert len(list(spans)) == 8
        assert spans.lost == 992
        assert spans.remark().startswith("992 of 1,000 spans are missing")


def test_a_session_without_a_timeline_says_how_to_keep_one(tmp_path):
    written = Written(tmp_path, timeline=0)
    with written.profile("env_step"):
        written.tick(1)
    with written.session() as session:
        spans = Spans(session)
        assert not spans.kept
        assert list(spans) == []
        assert spans.earliest() is None
        assert spans.remark() == NOT_KEPT
    assert "record(timeline=" in NOT_KEPT


def test_spans_whose_place_is_unknown_are_left_out_and_counted(written):
    with written.profile("env_step"):
        written.tick(1)
    event = struct.pack("=qqII", 1_000, 5, 77, 1)
    written.writer.write(Batch(1_001, written.fake.profiler._ledger.raw(), [], events=event))
    with written.session() as session:
        spans = Spans(session)
        assert [span.node.operation for span in spans] == ["env_step"]
        assert spans.lost == 1


def test_a_long_timeline_comes_whole_and_backwards(tmp_path):
    written = Written(tmp_path, timeline=16_384)
    for _ in range(10_000):
        with written.profile("env_step"):
            written.tick(1)
    with written.session() as session:
        spans = Spans(session)
        assert [span.start for span in spans] == list(range(10_999, 999, -1))
        assert spans.earliest() == 1_000
        assert spans.remark() is None
