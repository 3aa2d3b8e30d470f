"""Histograms in a session: 10 bytes a bucket that counts something.

HISTOGRAM ENCODING, little-endian: n uint16 buckets, then as many uint64 counts.
"""

from __future__ import annotations

import struct

from rlprof.ledger.histogram import BUCKETS_PER_OCTAVE, OCTAVES

BUCKETS = BUCKETS_PER_OCTAVE * OCTAVES


def pack_histogram(histogram: dict[int, int]) -> bytes:
    count = len(histogram)
    return struct.pack(f"<{count}H{count}Q", *histogram, *histogram.values())


def unpack_histogram(packed: bytes) -> dict[int, int]:
    """Raises ValueError for what is no histogram."""
    count, rest = divmod(len(packed), 10)
    if rest:
        raise ValueError("it is cut")
    figures = struct.unpack(f"<{count}H{count}Q", packed)
    histogram = dict(zip(figures[:count], figures[count:]))
    if len(histogram) < count or any(bucket >= BUCKETS for bucket in histogram):
        raise ValueError("it has a bucket that does not exist")
    if sum(histogram.values()) > 2**62:
        raise ValueError("it counts more than any run")
    return histogram
