"""Callers and callees on a thread, against a stack that is pushed and popped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import event, written

from rlprof.trace.analysis.nesting import nest
from rlprof.trace.kinds import Kind
from rlprof.trace.read import read_trace


@st.composite
def calls(draw, start=0, depth=0):
    """Events of one thread that nest as calls do: (start, duration), and the caller of each."""
    found, now = [], start
    for _ in range(draw(st.integers(0, 3 if depth < 4 else 0))):
        now += draw(st.integers(0, 3))
        inside = draw(calls(now + draw(st.integers(0, 1)), depth + 1))
        last = max([now, *(begin + duration for begin, duration in inside)])
        duration = last - now + draw(st.integers(0, 2))
        found += [(now, duration), *inside]
        now += duration
    return found


def oracle(events):
    """Self times, by popping what has ended: events come in the order of their calls."""
    stack, selfs = [], [duration for _, duration in events]
    for index, (start, duration) in enumerate(events):
        while stack and events[stack[-1]][0] + max(events[stack[-1]][1], 0) <= start:
            stack.pop()
        if stack:
            selfs[stack[-1]] -= duration
        stack.append(index)
    return selfs


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.lists(calls(), min_size=1, max_size=3))
def test_self_times_are_those_of_a_stack(tmp_path_factory, threads):
    events = [
        event(f"{tid}", start / 1000, duration / 1000, tid=tid)
        for tid, thread in enumerate(threads)
        for start, duration in thread
        if duration > 0
    ]
    if not events:
        return
    trace = read_trace(written(tmp_path_factory.mktemp("nesting"), events))
    found = nest(trace, trace.rows(Kind.OPERATOR))
    for tid, thread in enumerate(threads):
        real = sorted(((start, duration) for start, duration in thread if duration > 0), key=lambda x: (x[0], -x[1]))
        mine = np.array([name == str(tid) for name in trace.names(found.rows)], bool)
        assert found.self_time[mine].tolist() == oracle(real)
    assert found.overlaps == 0


def test_events_that_cross_are_counted(tmp_path):
    trace = read_trace(written(tmp_path, [event(ts=ts, dur=10) for ts in (0, 5)]))
    found = nest(trace, trace.rows(Kind.OPERATOR))
    assert found.overlaps == 1
    assert found.self_time.tolist() == [5_000, 10_000]
