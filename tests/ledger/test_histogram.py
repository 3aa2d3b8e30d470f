"""The duration buckets, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlprof.ledger import _core
from rlprof.ledger.histogram import BUCKETS_PER_OCTAVE, OCTAVES, bucket_of, quantile

LAST = OCTAVES * BUCKETS_PER_OCTAVE - 1


def exact_bucket(ns: int) -> int:
    """The largest i with 2^(i/32) <= ns, by whole numbers: 2^i <= ns^32."""
    return (ns**BUCKETS_PER_OCTAVE).bit_length() - 1


@given(st.integers(1, 2**47))
def test_both_cores_find_the_exact_bucket(ns):
    assert bucket_of(ns) == _core.bucket(ns) == exact_bucket(ns)


@pytest.mark.parametrize("octave", range(0, OCTAVES, 3))
def test_the_borders_are_exact(octave):
    for i in range(BUCKETS_PER_OCTAVE):
        border = round(2 ** (octave + i / BUCKETS_PER_OCTAVE))
        for ns in range(max(1, border - 2), border + 3):
            expected = min(LAST, exact_bucket(ns))
            assert bucket_of(ns) == _core.bucket(ns) == expected


def test_what_lies_outside_counts_at_the_ends():
    for ns in (-5, 0, 1):
        assert bucket_of(ns) == _core.bucket(ns) == 0
    for ns in (2**48, 2**62):
        assert bucket_of(ns) == _core.bucket(ns) == LAST


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=50), st.sampled_from([0.0, 0.5, 0.95, 1.0]))
def test_a_quantile_is_within_the_buckets_width(durations, q):
    counts: dict[int, int] = {}
    for ns in durations:
        counts[bucket_of(ns)] = counts.get(bucket_of(ns), 0) + 1
    estimate = quantile(counts, q)
    rank = int(Fraction(q) * (len(durations) - 1))
    exact = sorted(durations)[rank]
    assert estimate == pytest.approx(exact, rel=0.0111)


def test_without_a_count_there_is_no_quantile():
    assert quantile({}, 0.5) is None
