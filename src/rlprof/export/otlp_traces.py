"""A session's timeline as OTLP/JSON: an ExportTraceServiceRequest."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from hashlib import blake2b
from typing import BinaryIO

import msgspec

from rlprof.export.otlp import Json, attributes, resource, scope, unix_time
from rlprof.export.spans import Span, Spans, iteration_name, write_items
from rlprof.session.reader import IterationRow, Session

INTERNAL = 1
"""Kind of a span that neither sends nor receives."""


def write_otlp_traces(session: Session, file: BinaryIO) -> str | None:
    """Write the spans of the timeline, one trace per iteration. Returns a remark for the reader."""
    spans = Spans(session)
    head = msgspec.json.encode({"resource": resource(session)})[:-1]
    scoped = msgspec.json.encode({"scope": scope()})[:-1]
    file.write(b'{"resourceSpans":[' + head + b',"scopeSpans":[' + scoped + b',"spans":[\n')
    write_items(file, _Traces(session).all(spans))
    file.write(b"\n]}]}]}\n")
    return spans.remark()


class _Traces:
    """One trace per iteration, because a trace of a whole training is larger than any backend shows. A span belongs to
    the iteration it began in. Its parent is the iteration if its own parent is in another. Spans outside of all
    iterations form one more trace."""

    def __init__(self, session: Session) -> None:
        info = session.info
        self._session = session
        self._iterations = session.iterations()
        self._starts = [iteration.start for iteration in self._iterations]
        # The same session always gets the same ids, so that sending it twice does not duplicate it.
        self._seed = f"{info.host} {info.pid} {info.started} {info.name}"
        self._ids = [self._id(f"iteration {iteration.last}") for iteration in self._iterations]
        self._outside = self._id("outside")

    def all(self, spans: Spans) -> Iterator[Json]:
        if not spans.kept:
            return
        for place, iteration in enumerate(self._iterations):
            yield self._iteration(place, iteration)
        names = [attributes({"thread.name": lane.name}) for lane in spans.snapshot.lanes]
        for span in spans:
            yield self._span(span, names[span.node.lane])

    def _id(self, of: str) -> str:
        return blake2b(f"{self._seed} {of}".encode(), digest_size=16).hexdigest()

    def _iteration(self, place: int, iteration: IterationRow) -> Json:
        return {
            "traceId": self._ids[place],
            "spanId": self._ids[place][:16],
            "name": iteration_name(iteration),
            "kind": INTERNAL,
            "startTimeUnixNano": str(unix_time(self._session, iteration.start)),
            "endTimeUnixNano": str(unix_time(self._session, iteration.end)),
            "attributes": attributes({"rlprof.steps": iteration.steps, "rlprof.episodes": iteration.episodes}),
        }

    def _span(self, span: Span, lane: list[Json]) -> Json:
        place = self._place(span)
        parent = {}
        if span.parent is not None and self._place(span.parent) == place:
            parent["parentSpanId"] = _span_id(span.parent)
        elif place is not None:
            parent["parentSpanId"] = self._ids[place][:16]
        return {
            "traceId": self._outside if place is None else self._ids[place],
            "spanId": _span_id(span),
            **parent,
            "name": span.node.operation,
            "kind": INTERNAL,
            "startTimeUnixNano": str(unix_time(self._session, span.start)),
            "endTimeUnixNano": str(unix_time(self._session, span.end)),
            "attributes": [*attributes({"category": span.node.category}), *lane],
        }

    def _place(self, span: Span) -> int | None:
        """The iteration a span began in."""
        place = bisect_right(self._starts, span.start) - 1
        return place if place >= 0 and span.start < self._iterations[place].end else None


def _span_id(span: Span) -> str:
    return f"{span.number:016x}"
