"""The text report, read as a person at a terminal would."""

from __future__ import annotations

import io
import re
from contextlib import ExitStack
from decimal import Decimal

import pytest
from planted import Planted, Together
from rich.cells import cell_len
from rich.console import Console

from rlprof import Profiler, SpanCost
from rlprof.analysis.breakdown import breakdown
from rlprof.analysis.figures import count, duration
from rlprof.analysis.training import training_part
from rlprof.render.names import literal, shorten
from rlprof.report.breakdown import render, to_text

NASTY = ["[bold]env[/bold]", "two\nlines", "\x1b[31mred", ":smile:", "\u202eright to left", "環境" * 30, "x" * 500, ""]


def training() -> Planted:
    """Two iterations with most of their time in the backward pass."""
    planted = Planted(SpanCost(inside_ns=20_000, outside_ns=10_000, uncertainty_ns=15_000))
    for _ in range(2):
        with planted.profiler.iteration():
            for _ in range(4):
                planted.work("env_step", 25_000_000)
            with planted.profile("update"):
                planted.work("backward", 300_000_000, cpu=150_000_000)
            planted.tick(1_000_000)
    return planted


def nasty_training() -> Planted:
    planted = Planted()
    for i, name in enumerate(NASTY):
        with planted.profile(name):
            planted.work(name, 1_000 * (i + 1))
    return planted


def lines(planted: Planted, width: int = 80) -> list[str]:
    return to_text(planted.breakdown(), width).splitlines()


def line(planted: Planted, start: str, width: int = 80) -> str:
    (found,) = [line for line in lines(planted, width) if line.startswith(start)]
    return found


def test_the_first_line_is_the_headline():
    assert lines(training())[0] == "802 ms in 2 iterations. Largest: backward, 75% (600 ms)."


def test_without_iterations_the_headline_names_none(planted):
    planted.work("env_step", 30)
    assert lines(planted)[0] == "30 ns. Largest: env_step, 100% (30 ns)."


def test_a_row_shows_share_time_calls_mean_p95_and_cpu():
    figures = line(training(), "  backward").split()
    assert figures[2:] == ["74.8%", "600", "ms", "2", "300", "ms", "300", "ms", "50%"]
    assert re.fullmatch("█+[▏▎▍▌▋▊▉]?", figures[1])


def test_a_row_with_a_larger_share_has_the_longer_bar():
    bars = {name: line(training(), name, 120).count("█") for name in ("update", "env_step", "rlprof (")}
    assert bars["update"] > bars["env_step"] > bars["rlprof ("]
    assert bars["update"] == 30
    assert bars["env_step"] == pytest.approx(bars["update"] / 3, abs=1)


def test_the_profilers_own_cost_is_shown_with_its_uncertainty():
    assert line(training(), "rlprof (").split()[:4] == ["rlprof", "(±", "180", "us)"]


@pytest.mark.parametrize("seed_times", [(1, 1, 1), (3, 5, 7, 11, 13, 17), tuple(range(1, 25)), (1, 10_000)])
@pytest.mark.parametrize("header", ["operation", "category"])
def test_the_percentages_of_a_table_sum_to_100(seed_times, header):
    planted = Planted(SpanCost(inside_ns=0.3))
    for i, wall in enumerate(seed_times):
        with planted.profile(f"outer_{i}"):
            planted.work("backward", 50 * wall)
            planted.work("env_step", 20 * wall)
    planted.tick(5)
    text = to_text(planted.breakdown(), 80)
    table = text[text.index(header) :].split("\n\n")[0].splitlines()[1:]
    shares = [re.search(r"(\d+\.\d)%", line) for line in table if not line.startswith(" ")]
    assert len(shares) > 2
    assert sum(Decimal(share[1]) for share in shares) == Decimal("100.0")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("make", [training, nasty_training])
def test_no_line_is_wider_than_the_console_and_no_row_wraps(make, width):
    planted = make()
    shown = lines(planted, width)
    assert max(map(cell_len, shown)) <= min(width, 120)
    start = next(i for i, line in enumerate(shown) if line.startswith("operation"))
    rows = shown[start + 1 : shown.index("", start)]
    assert len(rows) == len(planted.breakdown().rows)
    assert all(re.search(r"\d\.\d%", row) for row in rows)


def test_eighty_columns_have_every_figure():
    header = next(line for line in lines(training()) if line.startswith("operation"))
    assert header.split() == ["operation", "share", "time", "calls", "mean", "p95", "CPU"]


def test_names_are_shown_as_they_are():
    text = to_text(nasty_training().breakdown(), 120)
    for shown in ("[bold]env[/bold] ", "two\\nlines ", "\\x1b[31mred ", ":smile: ", "\\u202eright to left "):
        assert text.count(shown) >= 2, shown
    assert not {"\x1b", "\u202e"} & set(text)


def test_long_names_lose_their_middle(planted):
    planted.work("environment.wrappers.normalize_observation", 10)
    planted.work("environment.wrappers.normalize_reward", 9)
    text = to_text(planted.breakdown(), 80)
    assert "environment.wr…rvation " in text
    assert "environment.wr…_reward " in text


def test_a_large_tree_is_cut_to_what_matters_and_says_so(planted):
    for i in range(50):
        planted.work(f"small_{i}", 1)
    planted.work("env_step", 1_000_000)
    with ExitStack() as stack:
        for _ in range(2_000):
            stack.enter_context(planted.profile("search"))
        planted.tick(1_000_000)
    shown = lines(planted)
    assert len(shown) < 40
    assert not any("small_" in line for line in shown)
    indents = [line.index("search") for line in shown if "search" in line]
    assert indents == list(range(10))
    assert "Not shown: 2,040 rows below 0.05% or deeper than 10 levels." in shown


def test_a_small_tree_is_shown_whole(planted):
    planted.work("env_close", 1)
    planted.work("env_step", 1_000_000)
    text = to_text(planted.breakdown())
    assert "env_close" in text
    assert "Not shown" not in text


def test_overlapped_work_and_lanes_are_noted_if_there_are_some(planted):
    with planted.profile("update"), Together(planted, 2, "env_step"):
        planted.tick(50_000)
    text = to_text(planted.breakdown())
    assert "Other lanes worked for 100 us while the driver was busy, too, mostly in env_step.\n" in text
    assert "Lanes: 3 threads. On average 3.00 of them were working. The driver is the thread that" in text
    alone = to_text(training().breakdown())
    assert "Other lanes" not in alone
    assert "Lanes" not in alone


def test_where_cpu_time_is_not_measured_the_report_says_so_and_has_no_column():
    profiler = Profiler(cpu="off")
    profiler.enable()
    with profiler.profile("env_step"):
        pass
    without = to_text(breakdown(training_part(profiler.snapshot())))
    assert "CPU time was not measured" in without
    assert without.count("CPU") == 1
    assert "not measured" not in to_text(training().breakdown())


def test_open_spans_are_noted(planted):
    planted.profile("update").__enter__()
    planted.tick(10)
    assert "1 span was still open at the end. Its time up to the end is counted." in to_text(planted.breakdown())


def test_a_profiler_that_recorded_nothing_says_so():
    assert to_text(Planted().breakdown()) == "Nothing was recorded: the profiler was not enabled.\n"


def test_a_terminal_without_unicode_gets_ascii():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    planted = nasty_training()
    planted.work("backward", 500_000)
    render(planted.breakdown(), Console(file=file, width=80))
    file.flush()
    text = file.buffer.getvalue().decode("ascii")
    assert "######" in text
    assert "..." in text
    assert "\\u74b0" in text


def test_a_terminal_with_colour_shows_the_same_characters():
    file = io.StringIO()
    planted = training()
    console = Console(file=file, width=100, force_terminal=True, color_system="standard", _environ={})
    render(planted.breakdown(), console)
    coloured = file.getvalue()
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in plain.splitlines()] == lines(planted, 100)


DURATIONS = {
    0: "0 ns", 999: "999 ns", 999.6: "1.00 us", 1_234: "1.23 us", 9_996: "10.0 us", 99_960: "100 us",
    999_600: "1.00 ms", 12_345_678: "12.3 ms", 1e9: "1.00 s", 1.8e12: "30m00s", 3.6e12: "1.00 h", 3e17: "83333 h",
}  # fmt: skip


@pytest.mark.parametrize(("ns", "text"), DURATIONS.items())
def test_durations_have_three_digits_and_seven_characters(ns, text):
    assert duration(ns) == text
    assert len(text) <= 7


def test_counts_are_exact_up_to_seven_characters():
    numbers = (0, 1_600, 999_999, 1_000_000, 1_234_567, 999_600_000)
    assert list(map(count, numbers)) == ["0", "1,600", "999,999", "1M", "1.23M", "1G"]


def test_shortened_names_fill_the_width_and_never_exceed_it():
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghij", 7) == "abcd…ij"
    for width in range(4, 40):
        assert width - 2 <= cell_len(shorten("環境" * 30, width)) <= width


def test_literal_leaves_printable_characters_alone():
    assert literal("größe [x]\t環境") == "größe [x]\\t環境"
    assert literal("größe", ascii_only=True) == "gr\\xf6\\xdfe"
