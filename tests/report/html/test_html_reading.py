"""The HTML report in a real browser: can it be read, on a desk and on a phone, whatever is in it?"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pages import CHARTS, DARK_INK, LIGHT_INK, Opener, box_named, one_span, overflow, planted, rows_of, session, until

from rlprof import Profiler
from rlprof.analysis.advice.finding import Finding, Gain
from rlprof.analysis.code import Call, Code, Line
from rlprof.analysis.report import Report
from rlprof.analysis.series import Series
from rlprof.render.names import literal
from rlprof.report.html.document import to_html

NASTY = (
    "<script>window.hacked = 1</script>",
    "</script><img src=x onerror='window.hacked = 1'>",
    "<b>bold</b>",
    "<a href='https://example.com/'>link</a>",
    "{{data}}",
    "%{label} $x$ &lt;",
    "\u2028line\u2029",
    "\"double\" 'single'",
    "two\nlines",
    "x" * 500,
)

CONTRAST = """() => {
  const numbers = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = numbers(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
  };
  const found = [];
  for (const element of document.querySelectorAll('body *:not(script):not(option)')) {
    const own = Array.from(element.childNodes).some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.offsetParent || element.closest('svg')) continue;
    const style = getComputedStyle(element);
    if (element.disabled || style.clipPath !== 'none') continue;
    found.push([contrast(numbers(style.color), behind(element)), element.tagName + ' ' + element.textContent]);
  }
  for (const text of document.querySelectorAll('svg text')) {
    const box = text.closest('.box');
    const below = box ? numbers(getComputedStyle(box.firstChild).fill) : behind(text.closest('.chart'));
    found.push([contrast(numbers(getComputedStyle(text).fill), below), (box ? 'box ' : 'chart ') + text.textContent]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    ink = DARK_INK if scheme == "dark" else LIGHT_INK
    until(page, f"document.querySelector('#lanes-chart .lane').getAttribute('fill') === '{ink}'")
    found = page.evaluate(CONTRAST)
    assert len(found) > 100
    assert any(text.startswith("box") for _, text in found)
    assert [(round(contrast, 2), text) for contrast, text in found if contrast < 4.5] == []


def test_a_phone_does_not_scroll_sideways(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, "document.documentElement.scrollWidth <= innerWidth")
    table = page.locator(".tall").evaluate("box => [box.scrollWidth > box.clientWidth, box.clientWidth <= innerWidth]")
    assert table == [True, True]


WIDER = """() => Array.from(document.querySelectorAll('body *')).filter(one => {
  // What scrolls in a box of its own is not cut off, and the skip link waits outside of the window.
  if (!one.checkVisibility() || one.matches('.skip') || one.parentElement.closest('.scroll, .links, svg')) return false;
  const { left, right } = one.getBoundingClientRect();
  return left < -1 || right > innerWidth + 1 || (one.scrollWidth > one.clientWidth + 1
    && getComputedStyle(one).overflowX === 'hidden');
}).map(one => one.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_at_400_px_nothing_is_cut_off(opener: Opener, report: Report, scheme: str) -> None:
    page = opener(planted(report), width=400, scheme=scheme)
    page.locator("#others > summary").click()
    assert page.evaluate(WIDER) == []
    assert overflow(page) <= 0


LINES = """selector => Array.from(document.querySelectorAll(selector)).filter(one => one.offsetParent).map(one => {
  const range = document.createRange();
  range.selectNodeContents(one);
  const tops = new Set(Array.from(range.getClientRects(), box => Math.round(box.top)));
  return [one.textContent, tops.size];
})"""


def test_no_figure_breaks_into_two_lines_on_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for selector in (".figures dd b", "td:not(:has(.bar)):not(:empty)"):
        found = page.evaluate(LINES, selector)
        assert any(len(re.sub(r"\D", "", text)) > 1 for text, _ in found), selector
        assert [text for text, lines in found if lines != 1] == []


def test_tables_of_a_column_fit_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, "document.documentElement.scrollWidth <= innerWidth")
    wide = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).map(box => box.textContent)"
    assert page.locator(".columns .scroll").evaluate_all(wide) == []


@pytest.mark.long
def test_a_long_name_is_shortened_and_not_dropped_in_the_operations_table(opener: Opener, folder: Path) -> None:
    page = opener(session(folder, "long_name", one_span("long_" * 20 + "name", 0.001)))
    box = page.locator("#operations-table .link").bounding_box()
    cell = page.locator("#operations-table tbody th").bounding_box()
    assert cell["x"] < box["x"] < box["x"] + box["width"] <= cell["x"] + cell["width"]
    page.set_viewport_size({"width": 390, "height": 844})
    # There the whole of it is shown, in several lines.
    assert page.locator("#operations-table .link").bounding_box()["height"] > 2 * box["height"]
    assert overflow(page) <= 0


def test_charts_and_scrolling_boxes_have_names(page: Any) -> None:
    for id in CHARTS:
        assert page.locator(f"#{id}").get_attribute("aria-label")
    assert page.locator(".box:not([aria-label])").count() == 0
    assert page.locator(".scroll:not([aria-label]), .scroll:not([tabindex])").count() == 0
    assert page.locator("th:not([scope])").count() == 0
    levels = page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(heading => Number(heading.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1


def nasty_training(profiler: Profiler) -> None:
    for _ in range(2):
        with profiler.iteration():
            for name in NASTY:
                with profiler.profile(name):
                    time.sleep(0.001)


@pytest.mark.long
def test_names_are_shown_and_not_interpreted(opener: Opener, folder: Path) -> None:
    found = session(folder, "nasty", nasty_training)
    line = Line(NASTY[0], 1, NASTY[2], NASTY[1], 1e6, 0.5, NASTY[:2])
    finding = Finding("rule", NASTY[0], line, NASTY[:2], NASTY, NASTY[1], Gain(1.5, 1.0, 1.8), f"rlprof {NASTY[0]}")
    code = Code(1, {NASTY[2]: (line,)}, {NASTY[2]: (Call(NASTY[:3], 1e6), Call(NASTY[:2], 1e6))}, ())
    info = replace(found.facts.session, name=NASTY[0], command=NASTY)
    facts = replace(found.facts, session=info, code=code)
    found = replace(found, facts=facts, findings=replace(found.findings, findings=(finding,)))
    page = opener(found, width=390, scheme="dark")
    assert page.evaluate("window.hacked") is None
    assert page.locator("h1").text_content() == NASTY[0]
    assert page.locator(".finding h3").text_content() == f"1. {NASTY[0]}"
    assert page.locator("main img, main b b, main a, svg a, main script").count() == 0
    shown = {cells[0] for cells in rows_of(page, "#operations-table tbody")}
    assert shown >= {literal(name) for name in NASTY if len(name) < 100}
    for name in ("<b>bold</b>", "{{data}}", "%{label} $x$ &lt;"):
        assert box_named(page, name).count() == 1, name
    box_named(page, "<b>bold</b>").hover()
    assert page.locator(".tip b").text_content() == "<b>bold</b>"
    assert overflow(page) <= 0


def test_a_session_without_a_training_is_one_sentence(opener: Opener, folder: Path) -> None:
    page = opener(session(folder, "empty", lambda _: None))
    assert "No training was seen" in page.locator("main").text_content()
    assert page.locator("section").count() == 1


@pytest.mark.long
def test_thousands_of_operations_and_hundreds_of_points_stay_quick_and_small(opener: Opener, folder: Path) -> None:
    def work(profiler: Profiler) -> None:
        with profiler.iteration():
            for number in range(2_000):
                with profiler.profile(f"operation_{number}"):
                    pass

    found = session(folder, "many", work)
    names = [operation.operation for operation in found.facts.operations]
    points = range(300)
    series = Series(
        first=tuple(10 * point + 1 for point in points),
        last=tuple(10 * point + 10 for point in points),
        start_ns=tuple(10**9 * point for point in points),
        wall_ns=(10 * (2_000 + 2),) * 300,
        steps=(80,) * 300,
        episodes=(0,) * 300,
        ledger_ns=dict.fromkeys([*names, "unattributed", "rlprof"], (10,) * 300),
        calls=dict.fromkeys(names, (10,) * 300),
    )
    series.check()
    # Every bucket there is, in every histogram: no report can be larger.
    full = dict.fromkeys(range(2_000), 1)
    operations = tuple(replace(operation, histogram=full) for operation in found.facts.operations)
    found = replace(found, facts=replace(found.facts, series=series, operations=operations))
    start = time.process_time()
    text = to_html(found)
    assert time.process_time() - start < 2
    assert len(text.encode()) < 2e6
    page = opener(found)
    assert page.locator("#operations-table tbody tr").count() == 1_000
    assert "1,000 smaller operations are not shown" in page.locator("#operations").text_content()
    assert page.locator("#ledger .area").count() == 10 + 1 + 2
    assert page.locator("#ledger .line").get_attribute("d").count("L") == 2 * 300 - 1
    page.locator("#search").fill("operation_1234")
    assert page.locator("#operations-table tbody tr:visible").count() <= 1
    assert "Not drawn" in page.locator("#tree-hidden").text_content()


def test_links_have_the_names_of_their_sections(opener: Opener, report: Report) -> None:
    page = opener(report, width=400)
    links = "links => links.map(link => [link.textContent, document.querySelector(`${link.hash} h2`).textContent])"
    found = page.locator("nav a").evaluate_all(links)
    assert len(found) > 5
    assert [link for link, title in found if link != title] == []
    assert page.locator(".links").evaluate("box => box.scrollWidth <= box.clientWidth")
    page.close()


@pytest.mark.parametrize(("findings", "below"), [(1, True), (3, False)])
def test_the_picture_has_the_room_that_few_findings_leave(
    opener: Opener, report: Report, findings: int, below: bool
) -> None:
    shown = planted(report)
    few = replace(shown.findings, findings=shown.findings.findings[:findings])
    page = opener(replace(shown, findings=few))
    sides = "sections => sections.map(one => one.getBoundingClientRect().left)"
    left, picture = page.locator(".first > section").evaluate_all(sides)
    assert (left == picture) == below
    page.close()


def test_a_long_path_keeps_its_file_and_line(report: Report) -> None:
    folder = "/".join(["a_folder_with_a_long_name"] * 4)
    line = Line(f"{folder}/train.py", 42, "main", "x = 1", 4e7, 0.9, ())
    code = replace(report.facts.code, lines={"update": (line,)})
    page = to_html(replace(report, facts=replace(report.facts, code=code)))
    assert f'title="{folder}/train.py:42">train.py:42</th>' in page
