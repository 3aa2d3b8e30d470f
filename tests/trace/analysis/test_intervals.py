"""Sets of instants against Python's own sets of small numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rlprof.trace.analysis.intervals import Intervals, joined

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8)


def made(pairs):
    return Intervals.of(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))


def instants(pairs):
    return {instant for a, b in pairs for instant in range(a, b)}


def held(intervals):
    assert (intervals.start[1:] > intervals.end[:-1]).all()
    assert (intervals.end > intervals.start).all()
    return {instant for a, b in zip(intervals.start, intervals.end) for instant in range(max(a, -5), min(b, 40))}


@settings(deadline=None)
@given(PAIRS, PAIRS)
def test_sets_are_what_sets_are(one, other):
    everything = set(range(-5, 40))
    assert held(made(one)) == instants(one)
    assert made(one).total == len(instants(one))
    assert held(made(one) | made(other)) == instants(one) | instants(other)
    assert held(made(one) & made(other)) == instants(one) & instants(other)
    assert held(made(one) - made(other)) == instants(one) - instants(other)
    assert held(~made(one)) == everything - instants(one)
    assert held(joined([made(one), made(other)])) == instants(one) | instants(other)


@settings(deadline=None)
@given(PAIRS, PAIRS)
def test_how_much_lies_within_each_of_others(one, others):
    start, end = (np.array([pair[side] for pair in others], np.int64) for side in (0, 1))
    assert made(one).within(start, end).tolist() == [len(instants(one) & instants([pair])) for pair in others]


def test_nothing_is_a_set_too():
    assert joined([]).total == 0
    assert Intervals.one(3, 3).total == 0
    assert Intervals.one(3, 8).total == 5
