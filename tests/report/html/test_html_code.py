"""The user's code in the HTML report: functions, lines, lanes, and the search over all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pages import Opener, box_named, boxes_of, planted, rows_of

from rlprof.analysis.lanes import LaneStrip, LaneTimeline
from rlprof.analysis.report import Report
from rlprof.report.html.boxes import function_boxes
from rlprof.report.html.charts import chart_data


@pytest.fixture(scope="module")
def code(opener: Opener, report: Report) -> Any:
    return opener(planted(report))


def test_functions_are_those_of_the_first_findings_operation(code: Any) -> None:
    assert code.locator("#functions-operation option:checked").text_content() == "update"
    assert [name for name, _ in boxes_of(code, "functions")] == [
        "learn (train.py)", "learn (train.py) itself", "collect (train.py)",
    ]  # fmt: skip


def test_heights_of_functions_are_their_shares(code: Any) -> None:
    heights = dict(boxes_of(code, "functions"))
    assert heights["collect (train.py)"] / heights["learn (train.py)"] == pytest.approx(4 / 6, abs=0.01)
    code.locator("#functions-operation").select_option(label="env_step")
    heights = dict(boxes_of(code, "functions"))
    assert heights["step (grid.py)"] / heights["collect (train.py)"] == pytest.approx(6 / 9, abs=0.01)
    box_named(code, "collect (train.py) itself", "functions").hover()
    assert "33.3% of the operation's own time: 30.0 ms" in code.locator(".tip").text_content()
    code.locator("#functions-operation").select_option(label="update")


def test_functions_that_all_stacks_share_are_left_out(report: Report) -> None:
    names = {drawn["operation"]: drawn["names"] for drawn in function_boxes(planted(report).facts)}
    assert not any("main" in name for found in names.values() for name in found)


def test_lines_stand_under_their_operation(code: Any) -> None:
    assert rows_of(code, "#lines-table tbody[data-name=update]") == [
        ["update"],
        ["train.py:42", "61.0%", "400 ms", "", "collect", "batch = torch.tensor([obs[i] for i in range(len(obs))])"],
        ["train.py:57", "30.0%", "20.0 ms", "", "train", "returns = [sum(rewards[i:]) for i in range(len(rewards))]"],
    ]


def test_the_search_filters_and_marks(code: Any) -> None:
    code.locator("#search").fill("Collect")
    assert code.locator("#lines-table tbody tr:not(.group):visible th").all_text_contents() == ["train.py:42"]
    assert code.locator("#operations-table tbody tr:visible").count() == 0
    assert code.locator(".finding:visible").count() == 1
    marked = code.locator("#functions-chart .box.hit").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert [label.split(",")[0] for label in marked] == ["collect (train.py)"]
    assert "dim" in box_named(code, "backward").get_attribute("class")
    assert "1 finding, 1 line" in code.locator("#search-count").text_content()
    code.locator("#search").fill("learning back")
    assert code.locator("#operations-table tbody tr:visible th").all_text_contents() == ["backward"]
    assert box_named(code, "backward").get_attribute("class").split() == ["box", "hit"]
    code.locator("#search").fill("nowhere")
    assert code.locator("#search-count").text_content() == "nothing found"
    code.locator("#search").fill("memory")
    assert code.locator("#others .finding:visible").count() == 1  # the others open by themselves
    code.locator("#search").fill("")
    assert code.locator("#operations-table tbody tr:visible").count() > 3
    assert code.locator(".box.dim, .box.hit").count() == 0


def test_every_lane_has_its_strip(code: Any, report: Report) -> None:
    names = code.locator("#lanes-chart .lane").all_text_contents()
    assert names[0].startswith("driver (")
    assert any(name.startswith("beside") for name in names)
    assert len(names) == len(report.facts.lanes.strips)


AREAS = """() => Array.from(document.querySelectorAll('#lanes-chart .area'), area => {
  const { top, bottom } = area.getBoundingClientRect();
  return bottom - top;
})"""


def test_the_height_of_a_strip_is_the_time_at_work(opener: Opener, report: Report) -> None:
    strips = (
        LaneStrip("driver (main)", "thread", True, {"env_step": (50, 50), "backward": (50, 50)}),
        LaneStrip("worker-1", "process", False, {"env_step": (25, 25)}),
    )
    timeline = LaneTimeline((1, 11), (10, 20), (100, 100), strips, hidden=2)
    page = opener(replace(report, facts=replace(report.facts, lanes=timeline)))
    step, backward, worker = page.evaluate(AREAS)
    assert step == pytest.approx(backward, abs=0.5)
    assert worker == pytest.approx(step / 2, abs=0.5)
    assert "worker-1: process, at work 25% of the time" in page.locator("#lanes-chart").text_content()
    assert "2 lanes" in page.locator("#lanes-hidden").text_content()
    page.locator("#lanes-chart").focus()
    page.keyboard.press("ArrowRight")
    assert "iterations 1 to 10" in page.locator(".tip").text_content()
    assert "worker-1" in page.locator(".tip").text_content()


def test_lanes_name_the_drivers_own_code(report: Report) -> None:
    timeline = LaneTimeline((1,), (1,), (100,), (LaneStrip("driver (main)", "thread", True, {"unattributed": (9,)}),))
    (strip,) = chart_data(replace(report, facts=replace(report.facts, lanes=timeline)))["lanes"]["strips"]
    assert strip["areas"][0]["name"] == "your code outside of operations"
