"""The charts of the HTML report, used in a real browser as a person would."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pages import DARK_INK, LIGHT_INK, Opener, box_named, boxes_of, one_span, overflow, session, until

from rlprof import Profiler
from rlprof.analysis.figures import duration
from rlprof.analysis.lanes import LaneStrip
from rlprof.analysis.report import Report


def names(page: Any) -> list[str]:
    return [name for name, _ in boxes_of(page, "tree")]


def test_a_click_zooms_into_the_tree_and_back(page: Any) -> None:
    assert "env_step" in names(page)
    box_named(page, "update").click()
    assert "env_step" not in names(page)
    assert "backward" in names(page)
    page.emulate_media(color_scheme="dark")
    until(page, f"document.querySelector('#lanes-chart .lane').getAttribute('fill') === '{DARK_INK}'")
    assert "env_step" not in names(page)  # a change of colours does not lose one's place
    page.locator("#tree-path button", has_text="training").click()
    assert "env_step" in names(page)


def test_the_tree_is_walked_with_the_keyboard(page: Any) -> None:
    box_named(page, "update").focus()
    page.keyboard.press("Enter")
    assert "env_step" not in names(page)
    assert "update" in page.evaluate("document.activeElement.textContent")
    page.locator("#tree-path button", has_text="training").press("Enter")
    assert "env_step" in names(page)


def test_heights_of_the_tree_are_training_time(page: Any, report: Report) -> None:
    whole = report.facts.breakdown
    height = float(page.locator("#tree-chart svg").get_attribute("height"))
    drawn = dict(boxes_of(page, "tree"))
    for row in whole.rows:
        if row.subtree_ledger_ns > 0.01 * whole.training_ns and row.category != "unattributed":
            assert drawn[row.operation] / height == pytest.approx(row.subtree_ledger_ns / whole.training_ns, abs=0.005)


SPAN = """areas => { const boxes = areas.map(area => area.getBBox());
  return [Math.min(...boxes.map(box => box.y)), Math.max(...boxes.map(box => box.y + box.height))]; }"""


def test_areas_sum_to_the_time_in_both_units(page: Any) -> None:
    grid = page.locator("#ledger .ytick").all_text_contents()
    assert grid[:6] == ["0", "20", "40", "60", "80", "100"]
    top, bottom = page.locator("#ledger .area").evaluate_all(SPAN)
    # The text of a tick stands 4 px below its line.
    ends = [float(page.locator("#ledger .ytick").nth(place).get_attribute("y")) - 4 for place in (5, 0)]
    assert [top, bottom] == pytest.approx(ends, abs=0.2)
    page.get_by_role("button", name="ms per iteration").click()
    page.locator("#ledger").focus()
    page.keyboard.press("ArrowRight")
    assert "iteration 1" in page.locator(".tip").text_content()
    page.get_by_role("button", name="percent").click()


def test_the_pointer_shows_the_figures_of_an_iteration(page: Any, report: Report) -> None:
    page.locator("#ledger").focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    series = report.facts.series
    spent = series.ledger_ns["env_step"][1]
    shown = f"env_step {100 * spent / series.wall_ns[1]:.1f}%, {duration(spent)}"
    assert shown in page.locator(".tip").text_content()
    page.keyboard.press("Escape")
    assert page.locator(".tip").is_hidden()


def test_an_operation_can_be_hidden_from_the_areas(page: Any) -> None:
    before = page.locator("#ledger .area").count()
    button = page.locator("#ledger-legend button", has_text="backward")
    button.click()
    assert page.locator("#ledger .area").count() == before - 1
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    assert page.locator("#ledger .area").count() == before


def test_a_distribution_shows_all_calls_and_marks_the_percentiles(page: Any, report: Report) -> None:
    page.locator("#operations-table .link", has_text="env_step").click()
    operation = report.facts.operation("env_step")
    assert operation is not None
    assert page.locator("#distribution-operation option:checked").text_content() == "env_step"
    script = "bins => bins.map(bin => ['calls', 'start', 'end'].map(name => Number(bin.dataset[name])))"
    bins = page.locator("#distribution .bin").evaluate_all(script)
    assert sum(calls for calls, _, _ in bins) == operation.calls
    named = {"p50": operation.p50_ns, "p95": operation.p95_ns, "p99": operation.p99_ns}
    labels = page.locator("#distribution .mark-label").all_text_contents()
    assert labels == [f"{mark} {duration(ns)}" for mark, ns in named.items() if ns]
    assert bins[0][1] <= operation.min_ns <= bins[0][2]
    assert bins[-1][1] <= operation.max_ns <= bins[-1][2]


def test_what_was_not_sampled_is_a_gap(page: Any) -> None:
    lines = page.locator("#resources .line").evaluate_all(
        "all => all.map(one => [one.dataset.name, one.attributes.d.value])"
    )
    assert [name for name, _ in lines] == ["process, of one core", "machine, of all cores", "process memory"]
    pieces = {name: re.sub(r"[^ML]", "", path) for name, path in lines}
    assert pieces["process, of one core"] == "MLML"  # 90, 95, two gaps, 80, 85
    assert pieces["process memory"] == "MLMLL"
    assert pieces["machine, of all cores"] == "MLLLLL"


def test_charts_follow_the_colours_of_the_page(page: Any) -> None:
    for scheme, media, ink in (
        ("dark", "screen", DARK_INK),
        ("light", "screen", LIGHT_INK),
        ("dark", "screen", DARK_INK),
        ("dark", "print", LIGHT_INK),
    ):
        page.emulate_media(color_scheme=scheme, media=media)
        for text in ("#lanes-chart .lane", "#distribution .mark-label"):
            until(page, f"document.querySelector('{text}').getAttribute('fill') === '{ink}'")


@pytest.mark.long
def test_a_session_without_iterations_still_has_its_other_charts(opener: Opener, folder: Path) -> None:
    page = opener(session(folder, "no_iterations", one_span("env_step", 0.01)))
    for id in ("ledger", "lanes-chart"):
        assert "No iterations were marked" in page.locator(f"#{id}").text_content()
    assert "env_step" in names(page)
    assert page.locator("#distribution .bin").count() == 1


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
        box_named(page, level).click()
        assert "level_001" not in names(page)
    assert "level_009" in names(page)
    assert "level_200" in page.locator("#tree details").text_content()
    page.locator("#tree summary").click()
    row = page.locator("#tree tbody tr", has_text="level_200")
    assert row.bounding_box()["height"] < 100  # the name has room beside its indent
    assert overflow(page) <= 0


BLOCKS = """() => Array.from(document.querySelectorAll('#tree-chart .box'), box => {
  const sides = one => { const { left, right, top, bottom } = one.getBoundingClientRect();
                         return { left, right, top, bottom }; };
  return { name: box.ariaLabel, block: sides(box.querySelector('rect')),
           texts: Array.from(box.querySelectorAll('text'), sides) };
})"""


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 700, 1280])
def test_a_block_with_room_for_a_line_has_its_name(opener: Opener, folder: Path, width: int) -> None:
    operations = [
        "collect_rollout_of_all_environments",
        "vectorised.environments.step_and_wait",
        "env_step_of_one",
        "x",
    ]

    def work(profiler: Profiler) -> None:
        def deeper(left: list[str]) -> None:
            with profiler.profile(left[0]):
                time.sleep(0.003)
                if left[1:]:
                    deeper(left[1:])

        deeper(operations)
        with profiler.profile("update_of_the_policy_and_the_value_function"):
            time.sleep(0.001)

    page = opener(session(folder, f"blocks_{width}", work), width=1280)
    # Made narrower while it is open: what was written for the wide page has to be written again.
    page.set_viewport_size({"width": width, "height": 844})
    until(page, "document.querySelector('#tree-chart svg').clientWidth <= document.getElementById('tree').clientWidth")
    blocks = [found for found in page.evaluate(BLOCKS) if found["block"]["bottom"] - found["block"]["top"] > 24]
    assert len(blocks) >= 4
    for found in blocks:
        block = found["block"]
        assert found["texts"], found
        for text in found["texts"]:
            assert text["right"] - text["left"] > 5, found
            assert block["left"] <= text["left"] < text["right"] <= block["right"] + 1, found
            assert block["top"] - 1 <= text["top"] < text["bottom"] <= block["bottom"] + 1, found
    assert overflow(page) <= 0


MARKS = """() => {
  const sides = one => { const { left, right, top, bottom } = one.getBoundingClientRect();
                         return [left, right, top, bottom]; };
  const chart = document.getElementById('distribution');
  return [
    Array.from(chart.querySelectorAll('.mark'), sides),
    Array.from(chart.querySelectorAll('.mark-label'), sides),
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
    assert page.locator("#distribution .ytick").all_text_contents() == ["0", "1"]
    assert page.locator("#distribution .xtick").count() >= 3  # an axis of one bucket has ticks as well


def test_a_point_is_as_wide_as_its_iterations(opener: Opener, report: Report) -> None:
    """Two points of 10 and 90 iterations: steps of these widths, without a slope between them."""
    made = {"first": (1, 11), "last": (10, 100), "wall_ns": (10**9, 9 * 10**9)}
    series = report.facts.series
    ledger = {"update": (10**9, 9 * 10**9), "unattributed": (0, 0), "rlprof": (0, 0)}
    steps = {"steps": (100, 450), "start_ns": (0, 10**9), "episodes": (0, 0), "ledger_ns": ledger, "calls": {}}
    lanes = replace(report.facts.lanes, **made, strips=(LaneStrip("driver", "thread", True, {"update": (1, 1)}),))
    facts = replace(report.facts, series=replace(series, **made, **steps), lanes=lanes)
    page = opener(replace(report, facts=facts))
    for selector in ("#ledger .line", "#lanes-chart .area"):
        path = page.locator(selector).first.get_attribute("d")
        points = [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+),([\d.]+)", path)][:4]
        (a, left), (b, also_left), (c, right), (d, also_right) = points
        assert (left, right, b) == (also_left, also_right, c)
        assert (d - c) / (b - a) == pytest.approx(9, rel=0.02)
    page.close()
