"""The page of one operation, and the pages of stacks and keys."""

from __future__ import annotations

import re
from dataclasses import replace

from frames import HOSTILE, LINE, MS, PLAIN, detail, text_of

from rlprof.ledger.histogram import bucket_of
from rlprof.live.stacks import ProcessStacks, ThreadStack
from rlprof.live.stacks_text import Stacks
from rlprof.top.help import help_lines
from rlprof.top.look import ASCII, Look
from rlprof.top.operation import histogram, operation_lines
from rlprof.top.stacks import stack_lines


def test_an_operation_has_its_quantiles_and_hottest_lines():
    text = text_of(operation_lines(detail(), 96, PLAIN))
    for expected in ("20,992 calls", "43.2%", "1.20 ms", "1.36 ms", "3.10 ms", "9.20 ms", "880 us", "41.0 ms",
                     "train.py:45", "91.0%", "env.step(action)"):  # fmt: skip
        assert expected in text, expected


def test_the_bars_of_the_histogram_count_every_call():
    counts = detail().histogram
    lines = [line.plain for line in histogram(counts, 96, PLAIN)]
    counted = [int(re.search(r"([\d,]+)$", line.rstrip())[1].replace(",", "")) for line in lines if "%" in line]
    assert sum(counted) == sum(counts.values())
    longest = max(lines, key=lambda line: line.count("█"))
    assert "9,000" in longest


def test_a_few_long_calls_do_not_press_the_others_into_one_line():
    counts = {bucket_of(int(ns)): 1_000 for ns in (1e6, 1.2e6, 1.5e6, 2e6)} | {bucket_of(10**11): 1}
    lines = [line.plain for line in histogram(counts, 96, PLAIN)]
    assert len([line for line in lines if "25.0%" in line]) == 4
    assert lines[-1].split()[0] == "longer"


def test_one_duration_is_one_full_bar():
    (line,) = histogram({bucket_of(5 * MS): 7}, 60, Look(ASCII))
    assert "100.0%" in line.plain
    assert line.plain.count("#") == 21


def test_no_line_is_wider_than_the_page():
    for name in HOSTILE:
        found = replace(detail(name), lines=(replace(LINE, file=name, function=name, source=name),) * 3)
        for width in (40, 60, 108):
            thread = ThreadStack(name, True, ((name, 3, name, name),) * 2, 4)
            found_stacks = Stacks(name, name, (ProcessStacks(1, name, True, "rlprof", (thread,)),))
            lines = stack_lines(found_stacks, width, PLAIN)
            lines += operation_lines(found, width, PLAIN) if width > 50 else []
            assert max(line.cell_len for line in lines) <= width
            assert all(line.plain.isprintable() for line in lines)


def test_stacks_show_every_thread_and_the_reason_for_a_missing_one():
    main = ThreadStack(
        "MainThread",
        True,
        (("/project/train.py", 3, "main", "train()"), ("/project/train.py", 9, "train", "q.get()")),
        -1,
    )
    found = (
        ProcessStacks(
            11, "cartpole", True, "rlprof", (main, ThreadStack("loader", False, (("lib.py", 0, "run", ""),)))
        ),
        ProcessStacks(12, "worker-1", False, "", (), "The process did not answer."),
    )
    text = text_of(stack_lines(Stacks("cartpole_1", "/project", found), 80, PLAIN))
    for expected in ("cartpole  process 11", "MainThread", "outer calls left out", "train.py:9 train", "q.get()",
                     "loader", "lib.py run", "worker-1  process 12", "The process did not answer."):  # fmt: skip
        assert expected in text, expected


def test_the_help_fits_60_columns():
    assert max(line.cell_len for line in help_lines(55, PLAIN)) <= 55
