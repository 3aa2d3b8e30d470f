"""The nested timeline: every span once, on a track without crossing spans, below its parent span."""

from __future__ import annotations

import os
import tracemalloc

import pytest
from timelines import Kept

from rlprof.export.chrome import write_chrome
from rlprof.export.otlp_traces import write_otlp_traces
from rlprof.export.spans import NOT_KEPT, Spans
from rlprof.export.speedscope import write_speedscope
from rlprof.ledger.rows import EVENT, TimelineEvent


@pytest.fixture
def kept(tmp_path):
    return Kept(tmp_path)


def read(kept) -> list[tuple[str, int, int, int, str | None]]:
    """(name, start, end, track, parent), in order of their start."""
    with kept.session() as session:
        spans = list(Spans(session))
    spans.sort(key=lambda span: (span.start, span.depth))
    return [
        (s.node.operation, s.start - 1_000, s.end - 1_000, s.track, s.parent and s.parent.node.operation) for s in spans
    ]


def test_children_lie_below_the_span_around_them(kept):
    with kept.profile("a"):
        kept.tick(1)
        with kept.profile("b"):
            kept.tick(2)
            kept.work("c", 3)
        kept.work("d", 4)
    assert read(kept) == [
        ("a", 0, 10, 0, None),
        ("b", 1, 6, 0, "a"),
        ("c", 3, 6, 0, "b"),
        ("d", 6, 10, 0, "a"),
    ]


def test_a_child_that_was_flushed_long_before_its_parent_finds_it(kept):
    with kept.profile("training"):
        for _ in range(3):
            kept.work("env_step", 5)
            kept.flush()
    assert [row[4] for row in read(kept)] == [None, "training", "training", "training"]


def test_spans_of_no_length_are_where_they_were(kept):
    kept.work("before", 0)
    with kept.profile("long"):
        kept.work("first", 0)
        kept.tick(5)
        kept.work("last", 0)
    kept.work("after", 0)
    found = {row[0]: row[4] for row in read(kept)}
    assert found == {"before": None, "long": None, "first": "long", "last": "long", "after": None}


def test_spans_that_cross_go_to_a_track_of_their_own(kept):
    with kept.profile("outer"):
        kept.cross("a", "b", 5)
    rows = {row[0]: row[1:] for row in read(kept)}
    assert rows["outer"] == (0, 15, 0, None)
    assert rows["b"] == (5, 15, 0, "outer")
    assert rows["a"] == (0, 10, 1, None)


def test_where_the_parent_was_lost_the_next_one_out_is_taken(tmp_path):
    kept = Kept(tmp_path, timeline=2)
    with kept.profile("outer"):
        with kept.profile("middle"):
            kept.work("inner", 3)
            kept.flush()
        for _ in range(5):
            kept.work("other", 1)
    assert {row[0]: row[4] for row in read(kept)} == {"outer": None, "inner": "outer", "other": "outer"}


def test_lost_spans_are_counted_and_reported(tmp_path):
    kept = Kept(tmp_path, timeline=8)
    for _ in range(1_000):
        kept.work("env_step", 1)
    with kept.session() as session:
        spans = Spans(session)
        assert len(list(spans)) == 8
        assert spans.lost == 992
        assert spans.remark().startswith("992 of 1,000 spans are missing")


def test_a_session_without_a_timeline_has_a_remark_how_to_keep_one(tmp_path):
    kept = Kept(tmp_path, timeline=0)
    kept.work("env_step", 1)
    with kept.session() as session:
        spans = Spans(session)
        assert not spans.kept
        assert list(spans) == []
        assert spans.earliest() is None
        assert spans.remark() == NOT_KEPT
    assert "record(timeline=" in NOT_KEPT


def test_spans_whose_place_is_unknown_are_left_out_and_counted(kept):
    kept.work("env_step", 1)
    batch = kept.batch()
    batch.events += EVENT.pack(*TimelineEvent(start=1_000, duration=5, node=77, depth=1))
    kept.writer.write(batch)
    with kept.session() as session:
        spans = Spans(session)
        assert [span.node.operation for span in spans] == ["env_step"]
        assert spans.lost == 1


def test_a_long_timeline_comes_whole_and_backwards(tmp_path):
    kept = Kept(tmp_path, timeline=16_384)
    for _ in range(10_000):
        kept.work("env_step", 1)
    with kept.session() as session:
        spans = Spans(session)
        assert [span.start for span in spans] == list(range(10_999, 999, -1))
        assert spans.earliest() == 1_000
        assert spans.remark() is None


@pytest.mark.figures
@pytest.mark.parametrize("write", [write_chrome, write_speedscope, write_otlp_traces])
def test_an_export_needs_little_more_memory_than_the_packed_spans(tmp_path, write):
    kept = Kept(tmp_path, timeline=65_536)
    with kept.profile("training"):
        for _ in range(50_000):
            kept.work("env_step", 1)
    with kept.session() as session, open(os.devnull, "wb") as file:
        tracemalloc.start()
        try:
            write(session, file)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # 24 bytes a span, 32 more for speedscope's two events, and one chunk as objects and as text. All of them as
    # dictionaries would be 15 MB and more.
    assert peak < 50_000 * (24 + 2 * 32) + 6e6
