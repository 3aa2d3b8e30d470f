"""The charts of the HTML report, used in a real browser as a person would."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pages import CHARTS, DARK_INK, LIGHT_INK, Opener, chart, one_span, overflow, session, slice_named, until

from rlprof import Profiler
from rlprof.analysis.figures import duration
from rlprof.analysis.report import Report


def test_a_click_zooms_into_the_tree_and_back(page: Any) -> None:
    assert chart(page, "icicle", "data[0].level") == "0"
    place = str(chart(page, "icicle", "data[0].labels.indexOf('update')"))
    slice_named(page, "update").click()
    until(page, f"document.getElementById('icicle').data[0].level === '{place}'")
    until(page, "!document.querySelector('#icicle').textContent.includes('env_step')")
    page.emulate_media(color_scheme="dark")
    until(page, f"document.getElementById('icicle').layout.font.color === '{DARK_INK}'")
    assert chart(page, "icicle", "data[0].level") == place  # a change of colours does not lose one's place
    page.get_by_role("button", name="Show the whole tree").click()
    until(page, "document.querySelector('#icicle').textContent.includes('env_step')")
    assert chart(page, "icicle", "data[0].level") == "0"


def test_the_tree_is_drawn_by_the_ledger(page: Any, report: Report) -> None:
    drawn = zip(chart(page, "icicle", "data[0].labels"), chart(page, "icicle", "data[0].values"))
    rows = [(row.operation, row.subtree_ledger_ns) for row in report.facts.breakdown.rows if row.subtree_ledger_ns > 0]
    assert list(drawn) == [("wall time", report.facts.breakdown.wall_ns), *rows]


def test_areas_sum_to_the_wall_time_in_both_units(page: Any, report: Report) -> None:
    series = report.facts.series
    areas = "data.filter(trace => trace.stackgroup).map(trace => trace.y)"
    sums = [sum(values) for values in zip(*chart(page, "ledger", areas))]
    assert sums == pytest.approx([100.0] * len(series))
    page.get_by_role("button", name="ms per iteration").click()
    sums = [sum(values) for values in zip(*chart(page, "ledger", areas))]
    assert sums == pytest.approx([ns / 1e6 for ns in series.wall_ns])
    page.get_by_role("button", name="percent").click()


def test_an_operation_can_be_hidden_from_the_areas(page: Any) -> None:
    visible = "data.filter(trace => trace.visible !== false).map(trace => trace.name)"
    button = page.locator("#ledger-legend button", has_text="backward")
    button.click()
    assert "backward" not in chart(page, "ledger", visible)
    button.click()
    assert "backward" in chart(page, "ledger", visible)


def test_a_distribution_shows_all_calls_and_marks_the_percentiles(page: Any, report: Report) -> None:
    page.locator("#operations-table .link", has_text="env_step").click()
    operation = report.facts.operation("env_step")
    assert page.locator("#distribution-operation option:checked").text_content() == "env_step"
    assert sum(chart(page, "distribution", "data[0].y")) == operation.calls
    marks = chart(page, "distribution", "layout.annotations.map(mark => mark.text)")
    named = {"p50": operation.p50_ns, "p95": operation.p95_ns, "p99": operation.p99_ns}
    assert marks == [f"{mark} {duration(ns)}" for mark, ns in named.items() if ns]
    middles, widths = chart(page, "distribution", "data[0].x"), chart(page, "distribution", "data[0].width")
    drawn = [(middle - width / 2, middle + width / 2) for middle, width in zip(middles, widths)]
    assert drawn[0][0] <= operation.min_ns <= drawn[0][1]
    assert drawn[-1][0] <= operation.max_ns <= drawn[-1][1]


def test_what_was_not_sampled_is_a_gap(page: Any) -> None:
    lines = chart(page, "resources", "data.map(line => [line.name, line.y])")
    assert [name for name, _ in lines] == ["process, of one core", "machine, of all cores", "process memory"]
    assert lines[0][1] == [90, 95, None, None, 80, 85]
    assert lines[2][1] == [256, 256, None, 256, 256, 256]
    assert page.locator("#resources .scatterlayer .trace").first.locator("path.js-line").count() == 2


def test_charts_follow_the_colours_of_the_page(page: Any) -> None:
    for scheme, media, ink in (
        ("dark", "screen", DARK_INK),
        ("light", "screen", LIGHT_INK),
        ("dark", "screen", DARK_INK),
        ("dark", "print", LIGHT_INK),
    ):
        page.emulate_media(color_scheme=scheme, media=media)
        for id in CHARTS:
            until(page, f"document.getElementById('{id}').layout.font.color === '{ink}'")


@pytest.mark.long
def test_a_session_without_iterations_still_has_its_other_charts(opener: Opener, folder: Path) -> None:
    page = opener(session(folder, "no_iterations", one_span("env_step", 0.01)))
    assert "No iterations were marked" in page.locator("#ledger").text_content()
    assert slice_named(page, "env_step").count() == 1
    assert chart(page, "distribution", "data[0].y") == [1]


@pytest.mark.long
def test_a_tree_of_two_hundred_levels_can_be_walked_down(opener: Opener, folder: Path) -> None:
    def work(profiler: Profiler) -> None:
        def deeper(level: int) -> None:
            with profiler.profile(f"level_{level:03d}"):
                time.sleep(0.0002)
                if level < 200:
                    deeper(level + 1)

        deeper(1)

    page = opener(session(folder, "deep", work), width=390)
    for level in ("level_003", "level_006"):
        slice_named(page, level).click()
        until(page, "!document.querySelector('#icicle').textContent.includes('level_001')")
    until(page, "document.querySelector('#icicle').textContent.includes('level_009')")
    assert "level_200" in page.locator("#tree details").text_content()
    page.locator("#tree summary").click()
    row = page.locator("#tree tbody tr", has_text="level_200")
    assert row.bounding_box()["height"] < 100  # the name has room beside its indent
    assert overflow(page) <= 0


BLOCKS = """() => Array.from(document.querySelectorAll('#icicle g.slice'), slice => {
  const sides = one => { const { left, right, top, bottom } = one.getBoundingClientRect();
                         return { left, right, top, bottom }; };
  const text = slice.querySelector('text');
  return { name: text ? text.textContent : '', block: sides(slice.querySelector('path')), text: text && sides(text) };
})"""


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 700, 1280])
def test_a_block_with_room_for_a_line_has_its_name(opener: Opener, folder: Path, width: int) -> None:
    names = ["collect_rollout_of_all_environments", "vectorised.environments.step_and_wait", "env_step_of_one", "x"]

    def work(profiler: Profiler) -> None:
        def deeper(left: list[str]) -> None:
            with profiler.profile(left[0]):
                time.sleep(0.003)
                if left[1:]:
                    deeper(left[1:])

        deeper(names)
        with profiler.profile("update_of_the_policy_and_the_value_function"):
            time.sleep(0.001)

    page = opener(session(folder, f"blocks_{width}", work), width=1280)
    # Made narrower while it is open: what was written for the wide page has to be written again.
    page.set_viewport_size({"width": width, "height": 844})
    until(page, "document.getElementById('icicle')._fullLayout.width <= innerWidth - 20")
    until(page, f"document.getElementById('icicle').data[0].maxdepth === {4 if width <= 600 else 6}")
    until(page, "document.querySelectorAll('#icicle g.slice').length >= 5")
    time.sleep(0.3)
    blocks = [found for found in page.evaluate(BLOCKS) if found["block"]["bottom"] - found["block"]["top"] > 24]
    assert len(blocks) >= 4
    for found in blocks:
        block, text = found["block"], found["text"]
        assert text is not None, found
        assert text["right"] - text["left"] > 5, found
        assert text["bottom"] - text["top"] > 5, found
        assert block["left"] <= text["left"] < text["right"] <= block["right"] + 1, found
    read = " ".join(found["name"] for found in blocks)
    assert "colle" in read
    assert "vecto" in read


MARKS = """() => {
  const sides = one => { const { left, right, top, bottom } = one.getBoundingClientRect();
                         return [left, right, top, bottom]; };
  const chart = document.getElementById('distribution');
  return [
    Array.from(chart.querySelectorAll('.shapelayer path'), sides),
    Array.from(chart.querySelectorAll('.annotation-text'), sides),
    sides(chart),
  ];
}"""


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1280])
def test_no_line_of_a_percentile_runs_through_the_label_of_another(opener: Opener, report: Report, width: int) -> None:
    ms = 1_000_000
    cases = [(1.0, 1.0, 1.0), (1.0, 1.02, 1.05), (1.0, 1.1, 1.2), (1.0, 90.0, 99.0), (80.0, 90.0, 99.0)]
    cases += [(1.0, 1.5, 99.0), (1.0, 6.0, 9.0), (30.0, 60.0, 99.0)]
    # Bucket i begins at 2^(i/32) ns: the calls are spread from 1 to 100 ms.
    spread = dict.fromkeys(range(638, 851, 3), 1)
    operations = tuple(
        replace(
            report.facts.operations[0],
            operation=f"case_{number}",
            histogram=spread,
            calls=len(spread),
            **{f"p{part}_ns": value * ms for part, value in zip((50, 95, 99), case)},
        )
        for number, case in enumerate(cases)
    )
    page = opener(replace(report, facts=replace(report.facts, operations=operations)), width=width)
    for number, case in enumerate(cases):
        page.locator("#distribution-operation").select_option(str(number))
        lines, labels, (left, right, *_) = page.evaluate(MARKS)
        assert (len(lines), len(labels)) == (3, 3)
        for x0, x1, top, bottom in labels:
            assert left <= x0 < x1 <= right, case
            crossing = [line for line in lines if x0 < line[0] < x1 and line[2] < bottom - 1 and line[3] > top]
            assert crossing == [], case
        rows = sorted((top, bottom) for _, _, top, bottom in labels)
        assert all(below >= above - 2 for (_, above), (below, _) in pairwise(rows)), case


@pytest.mark.long
def test_few_calls_are_counted_in_whole_numbers(opener: Opener, folder: Path) -> None:
    page = opener(session(folder, "once", one_span("once", 0.001)), width=390)
    assert page.locator("#distribution .ytick text").all_text_contents() == ["0", "1"]
    assert page.locator("#distribution .xtick text").count() >= 3  # an axis of one bucket has ticks as well
