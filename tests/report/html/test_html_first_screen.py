"""The first screen of the HTML report: the verdict, what to change, and the picture of the training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pages import STACK, Opener, box_named, boxes_of, planted, until

from rlprof.analysis.advice.notes import Note
from rlprof.analysis.breakdown import Portion
from rlprof.analysis.report import Report
from rlprof.analysis.training import Outside
from rlprof.report.answer import around, gain_text, no_cause, origin, speed
from rlprof.report.html.document import to_html
from rlprof.report.html.lines import NOT_SAMPLED


@pytest.fixture(scope="module")
def found(report: Report) -> Report:
    """With findings, lines of code, and half a second of start-up."""
    whole = report.facts.breakdown
    outside = (Outside("startup", 500_000_000),)
    breakdown = replace(whole, outside=outside, wall_ns=whole.training_ns + 500_000_000)
    notes = (Note("crowded_machine", "Other programs used the cores."),)
    facts = replace(report.facts, breakdown=breakdown)
    return planted(replace(report, facts=facts, findings=replace(report.findings, notes=notes)))


@pytest.fixture(scope="module")
def first(opener: Opener, found: Report) -> Any:
    return opener(found, height=800)


def test_a_report_is_smaller_than_two_megabytes(found: Report) -> None:
    assert len(to_html(found).encode()) < 2_000_000


def test_verdict_findings_and_picture_are_seen_without_scrolling(first: Any) -> None:
    assert first.evaluate("scrollY") == 0
    for selector in (".verdict", ".finding >> nth=0", ".finding >> nth=0 >> .copy", "#tree-chart svg"):
        box = first.locator(selector).first.bounding_box()
        assert box["y"] >= 0, selector
        assert box["y"] + box["height"] <= 800, selector
    assert first.locator("#tree-chart svg").bounding_box()["width"] > 500


def test_the_words_are_those_of_the_text_report(first: Any, found: Report) -> None:
    assert first.locator(".origin").text_content().replace("cartpole", "cartpole, ", 1) == origin(found)
    assert first.locator(".verdict").text_content() == speed(found.facts)
    assert first.locator(".around").text_content() == around(found.facts)
    assert first.locator("header .note").text_content() == "Note: Other programs used the cores."


def test_a_finding_has_its_line_gain_and_command_and_stands_once(first: Any, found: Report) -> None:
    finding = found.findings.findings[0]
    card = first.locator(".finding").first
    assert card.locator("h3").text_content() == f"1. {finding.cause}"
    assert "Try first" in card.text_content()
    assert gain_text(finding) in card.text_content()
    assert "train.py:42 in collect" in card.text_content()
    assert card.locator("code.source").text_content() == STACK.source
    assert card.locator(".command code").text_content() == finding.check
    assert first.locator("main").text_content().count(finding.cause) == 1
    assert first.locator(".finding:visible").count() == 2
    first.locator("#others > summary").click()
    assert first.locator(".finding:visible").count() == 3
    first.locator("#others > summary").click()


def test_the_copy_button_copies_the_command(first: Any, found: Report) -> None:
    first.locator(".finding .copy").first.click()
    until(first, "document.querySelector('.copy').textContent === 'Copied'")
    first.locator("#search").focus()
    first.keyboard.press("Control+V")
    assert first.locator("#search").input_value() == found.findings.findings[0].check
    first.locator("#search").fill("")
    until(first, "document.querySelector('.copy').textContent === 'Copy'")


def test_start_up_is_drawn_on_demand(first: Any) -> None:
    names = [name for name, _ in boxes_of(first, "tree")]
    assert "env_step" in names
    assert "start-up" not in names
    toggle = first.get_by_role("button", name="with start-up")
    toggle.click()
    shown = dict(boxes_of(first, "tree"))
    assert shown["start-up"] / shown["training"] == pytest.approx(0.5e9 / first.evaluate(TRAINING_NS), rel=0.05)
    assert toggle.get_attribute("aria-pressed") == "true"
    toggle.click()
    assert "start-up" not in dict(boxes_of(first, "tree"))


TRAINING_NS = "() => JSON.parse(document.getElementById('data').textContent).tree.values[1]"


def test_own_code_is_a_box_with_its_line(opener: Opener, found: Report) -> None:
    whole = found.facts.breakdown
    update = next(place for place, row in enumerate(whole.rows) if row.operation == "update")
    taken = whole.rows[update].subtree_ledger_ns // 2
    rows = list(whole.rows)
    rows[update] = replace(rows[update], ledger_ns=rows[update].ledger_ns + taken)
    page = opener(replace(found, facts=replace(found.facts, breakdown=replace(whole, rows=tuple(rows)))))
    own = box_named(page, "your code in update")
    assert "train.py:42 batch =" in own.text_content()
    own.hover()
    assert "61.0% in train.py:42" in page.locator(".tip").text_content()


def test_without_a_finding_the_largest_operation_and_its_lines_are_named(opener: Opener, found: Report) -> None:
    # On a busy machine, time outside of all spans may be more.
    largest = Portion("env_step", found.facts.operation("env_step").ledger_ns, 50.0)
    facts = replace(found.facts, breakdown=replace(found.facts.breakdown, largest=largest))
    report = replace(found, facts=facts, findings=replace(found.findings, findings=()))
    page = opener(report)
    shown = page.locator("#findings").text_content()
    assert no_cause(report.facts) in shown
    assert page.locator(".hottest code").all_text_contents() == ["time.sleep(0.0001)"]


def test_without_samples_of_the_stack_the_page_says_so(shared: Any) -> None:
    assert NOT_SAMPLED in shared.locator("#code").text_content()
    assert shared.locator("#functions, #lines-table").count() == 0
