"""Durations in logarithmic buckets: 32 per octave, so a quantile is known to 1.1 % and histograms add up exactly.

Bucket i covers [2^(i/32), 2^((i+1)/32)) nanoseconds; this is base 2, scale 5 of the OpenTelemetry exponential
histogram. The C core counts in the same buckets.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Mapping

BUCKETS_PER_OCTAVE = 32
OCTAVES = 48

_MANTISSA_BITS = 52


def _border(i: int) -> int:
    """The smallest mantissa in an octave's bucket i, by whole numbers: rounding would move durations over a border."""
    target = 2 ** (_MANTISSA_BITS * BUCKETS_PER_OCTAVE + i)
    mantissa = round(2 ** (_MANTISSA_BITS + i / BUCKETS_PER_OCTAVE)) - 2
    while mantissa**BUCKETS_PER_OCTAVE < target:
        mantissa += 1
    return mantissa


_BORDERS = [_border(i) for i in range(BUCKETS_PER_OCTAVE)]


def bucket_of(ns: int) -> int:
    """The bucket that counts a duration."""
    if ns < 1:
        return 0
    octave = ns.bit_length() - 1
    if octave >= OCTAVES:
        return OCTAVES * BUCKETS_PER_OCTAVE - 1
    mantissa = ns << (_MANTISSA_BITS - octave)
    return octave * BUCKETS_PER_OCTAVE + bisect_right(_BORDERS, mantissa) - 1


def quantile(counts: Mapping[int, int], q: float) -> float | None:
    """The q-quantile in ns, as the geometric middle of its bucket; None without a count."""
    total = sum(counts.values())
    if total == 0:
        return None
    rank = q * (total - 1)
    seen = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen > rank:
            return float(2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE))
    raise AssertionError("unreachable: the ranks end below the total")


def pack(counts: Mapping[int, int]) -> bytes:
    """As the C core does: little-endian, n uint16 buckets in order, then as many uint64 counts."""
    buckets = sorted(counts)
    return struct.pack(f"<{len(buckets)}H{len(buckets)}Q", *buckets, *(counts[bucket] for bucket in buckets))


def unpack(packed: bytes) -> dict[int, int]:
    """The counts by bucket. Raises ValueError if the bytes are no histogram."""
    length, rest = divmod(len(packed), 10)
    if rest:
        raise ValueError("it is cut")
    figures = struct.unpack(f"<{length}H{length}Q", packed)
    counts = dict(zip(figures, figures[length:]))
    if len(counts) < length or any(bucket >= OCTAVES * BUCKETS_PER_OCTAVE for bucket in counts):
        raise ValueError("it has a bucket that does not exist, or one twice")
    if sum(counts.values()) > 2**62:
        raise ValueError("it counts more than any run")
    return counts
