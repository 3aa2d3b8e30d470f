"""Traces that were made to do harm: refused in one sentence, after little work and with little memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import subprocess
import sys
import zlib
from dataclasses import replace

import pytest
from traces import event, real_traces, unpacked, written

from rlprof.errors import UnreadableError
from rlprof.trace.kinds import Kind
from rlprof.trace.limits import LIMITS, NO_LIMITS, Limits
from rlprof.trace.pieces import PIECE, Pieces
from rlprof.trace.read import read_trace

SMALL = Limits(text=8 * PIECE, ratio=20, free=2 * PIECE, value=PIECE, events=10_000, texts=PIECE)


def rlprof(*words, memory=None):
    """As people type it; with only so much address space, as in a container."""
    limited = None if memory is None else lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "rlprof", *map(str, words)],
        capture_output=True, text=True, check=False, preexec_fn=limited, env=environment,
    )  # fmt: skip


def bomb(path, size):
    """So many spaces in a trace."""
    with gzip.open(path, "wb") as file:
        file.write(b'{"traceEvents": [')
        for _ in range(size // PIECE):
            file.write(b" " * PIECE)
        file.write(b"]}")
    return path


def refused(path, limits=SMALL):
    with pytest.raises(UnreadableError) as refusal:
        read_trace(path, limits=limits)
    message = str(refusal.value)
    assert message.startswith(str(path))
    assert message.endswith(". Use --no-limits to read it anyway.")
    assert "\n" not in message
    return message


def test_a_gzip_bomb_is_left_after_a_few_pieces(tmp_path):
    path = bomb(tmp_path / "bomb.json.gz", 64 * PIECE)
    reported = []
    with pytest.raises(UnreadableError, match="unpacks to more than 20 times its size"):
        read_trace(path, lambda *done: reported.append(done), limits=SMALL)
    assert len(reported) <= SMALL.free // PIECE + 1
    assert "20 times" in refused(path)


@pytest.mark.long
def test_the_default_limit_holds_against_a_real_bomb_on_the_command_line(tmp_path):
    """A bomb of 170 MB: the smallest that the default limit refuses is 128 MB."""
    path = bomb(tmp_path / "bomb.json.gz", 170 * PIECE)
    assert path.stat().st_size < PIECE
    done = rlprof("trace", "summary", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "unpacks to more than 100 times its size" in done.stderr
    done = rlprof("trace", "summary", "--no-limits", path)
    assert "has no events" in done.stderr, "with the option it is read to its end"


def test_bombs_one_behind_the_other_count_together(tmp_path):
    path = bomb(tmp_path / "bomb.json.gz", PIECE)
    path.write_bytes(path.read_bytes() * 64)
    assert "20 times" in refused(path)


def test_more_text_than_the_limit_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(SMALL.text + 1)  # a hole, which takes no room on the disk
    pieces = Pieces(path, SMALL)
    with pytest.raises(UnreadableError, match=r"has more than 0\.0 GB of text"):
        next(iter(pieces))
    assert pieces.read == 0
    with path.open("wb") as file:
        file.truncate(LIMITS.text + 1)
    assert "has more than 4.0 GB of text" in refused(path, LIMITS)


def test_a_header_without_end_is_refused(tmp_path):
    path = tmp_path / "header.json"
    path.write_bytes(b'{"a": "' + b"x" * (3 * PIECE) + b'", "traceEvents": [' + json.dumps(event()).encode() + b"]}")
    assert "the value at byte 1 of its text is larger than 1.0 MB" in refused(path)


def test_a_name_without_end_is_refused(tmp_path):
    path = written(tmp_path, [event("x"), event("y" * (3 * PIECE))])
    assert "of its text is larger than 1.0 MB" in refused(path)


def test_a_value_is_refused_for_its_own_length_and_not_for_what_follows_it(tmp_path):
    path = written(tmp_path, [event(letter * (PIECE - 1_000)) for letter in "abcdef"])
    assert len(read_trace(path, limits=replace(SMALL, texts=1 << 30)).kind) == 6


def test_too_many_events_are_refused(tmp_path):
    path = tmp_path / "many.json"
    path.write_bytes(b"[" + b",".join([b"{}"] * (SMALL.events + 1)) + b"]")
    assert "has more than 10,000 events" in refused(path)
    path.write_bytes(b"[" + b",".join([json.dumps(event()).encode()] * SMALL.events) + b"]")
    assert len(read_trace(path, limits=SMALL).kind) == SMALL.events


def test_too_many_texts_are_refused(tmp_path):
    path = written(tmp_path, [event(f"{number:0>4000}") for number in range(600)])
    assert "GB of different texts" in refused(path)


def test_a_long_name_is_shown_by_its_begin_and_end(tmp_path):
    trace = read_trace(written(tmp_path, [event("begin" + "y" * 100_000 + "end")]))
    (name,) = trace.names(trace.rows(Kind.OPERATOR))
    assert (len(name), name[:6], name[-4:]) == (10_001, "beginy", "yend")


def test_no_limits_reads_it_all(tmp_path):
    path = written(tmp_path, [event("y" * (3 * PIECE))])
    assert len(read_trace(path, limits=NO_LIMITS).kind) == 1


def test_values_nested_without_end_are_used_as_they_are(tmp_path):
    nested = "[" * 100_000 + "]" * 100_000
    path = tmp_path / "nested.json"
    path.write_text(f'{{"a": {nested}, "traceEvents": [{{"ph": "X", "ts": 1, "dur": 2, "name": {nested}}}]}}')
    trace = read_trace(path)
    assert trace.header == {}
    assert trace.names(range(1))[0].startswith("[[[")
    assert rlprof("trace", "summary", path).returncode == 0


@pytest.mark.long
@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer maps terabytes at its start"
)
def test_a_lack_of_memory_is_one_sentence(tmp_path):
    path = tmp_path / "header.json"
    with path.open("wb") as file:
        file.write(b'{"a": "')
        file.truncate(800 << 20)
    done = rlprof("trace", "summary", "--no-limits", path, memory=700 << 20)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "needs more memory than there is" in done.stderr


@real_traces()
def test_real_traces_are_far_from_the_limits(path):
    text = len(unpacked(path))
    assert text < LIMITS.text / 50
    assert text / path.stat().st_size < LIMITS.ratio / 3


def test_the_most_repetitive_trace_passes(tmp_path):
    """A kernel launched over and over, with times that count up: gzip makes it small, and it is no bomb."""
    text, packer = io.BytesIO(), zlib.compressobj(wbits=31)
    for number in range(20_000):
        text.write(json.dumps(event("aten::add", 1_000 + 10 * number, 5, correlation=number)).encode() + b",\n")
    size = len(packer.compress(text.getvalue()) + packer.flush())
    assert len(text.getvalue()) / size < LIMITS.ratio / 3
