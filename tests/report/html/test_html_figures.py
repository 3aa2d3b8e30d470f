"""The HTML report shows the report's figures in the words of the text report."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from pages import rows_of

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.figures import count, duration, percent, rate, size
from rlprof.analysis.report import Report
from rlprof.errors import MissingLibraryError
from rlprof.render.html.plain import file
from rlprof.report.html import document
from rlprof.report.html.document import to_html
from rlprof.report.html.shares import own_shares


def test_the_operations_table_has_the_reports_figures(page: Any, report: Report) -> None:
    shares = own_shares(report)
    header, *_ = rows_of(page, "#operations-table thead")
    found = {name: dict(zip(header[1:], cells)) for name, *cells in rows_of(page, "#operations-table tbody")}
    assert list(found) == [operation.operation for operation in report.facts.operations]
    for operation in report.facts.operations:
        times = {"mean": operation.mean_ns, "p50": operation.p50_ns, "p95": operation.p95_ns, "p99": operation.p99_ns}
        times |= {"time": operation.ledger_ns, "total": operation.busy_ns}
        times |= {"min": operation.min_ns, "max": operation.max_ns}
        expected = {name: duration(ns) for name, ns in times.items() if ns is not None}
        expected |= {"share": percent(shares[operation.operation]), "calls": count(operation.calls)}
        expected["CPU"] = "" if operation.cpu_percent is None else f"{operation.cpu_percent:.0f}%"
        expected["mem peak"] = "" if operation.memory_peak is None else size(operation.memory_peak)
        assert {name: found[operation.operation].get(name, "") for name in expected} == expected
    extra = [cells[:3] for cells in rows_of(page, "#operations-table tfoot")]
    rows = report.facts.breakdown.rows[-2:]
    assert extra == [[row.operation, percent(row.share), duration(row.ledger_ns)] for row in rows]


def test_the_headline_has_the_reports_figures(page: Any, report: Report) -> None:
    shown = page.locator("#headline b").all_text_contents()
    facts = report.facts
    assert shown[:3] == [
        rate(facts.progress.steps_per_second),
        percent(own_shares(report)[facts.breakdown.largest.name]),
        duration(facts.breakdown.wall_ns),
    ]


def test_every_section_stands_in_its_place(page: Any) -> None:
    assert page.locator("h1").text_content() == "cartpole"
    order = page.locator("main section").evaluate_all("sections => sections.map(section => section.id)")
    assert order == [
        "headline", "findings", "tree", "iterations", "durations", "machine", "operations", "rollout", "categories",
        "parallelism", "expectation", "notes",
    ]  # fmt: skip
    assert "bottleneck" in page.locator("#rollout").text_content()
    shares = [float(cells[1].rstrip("%")) for cells in rows_of(page, "#parallelism .bars:first-of-type tbody")]
    measured = "not measured" not in page.locator("#parallelism").text_content()
    assert not measured or sum(shares) == pytest.approx(100.0, abs=1e-6)


def test_a_click_on_a_column_sorts_and_typing_filters(page: Any) -> None:
    def column(index: int) -> list[str]:
        return [cells[index] for cells in rows_of(page, "#operations-table tbody")]

    before = column(0)
    page.locator("#operations-table").get_by_role("button", name="operation", exact=True).click()
    assert column(0) == sorted(before)
    calls = page.locator("#operations-table").get_by_role("button", name="calls", exact=True)
    calls.click()
    assert column(3) == sorted(column(3), key=int, reverse=True)
    calls.click()
    assert column(3) == sorted(column(3), key=int)
    peak = page.locator("#operations-table").get_by_role("button", name="mem peak", exact=True)
    for _ in range(2):
        peak.click()
        assert column(0)[0] == "optimizer_step"  # the only one measured; the others are neither more nor less
    page.locator("#filter").fill("learning back")
    assert page.locator("#operations-table tbody tr:visible th").all_text_contents() == ["backward"]
    assert "1 of " in page.locator("#filter-count").text_content()
    page.locator("#filter").fill("")
    page.locator("#operations-table").get_by_role("button", name="time", exact=True).click()
    assert column(0) == before


def test_the_page_allows_its_own_scripts_and_nothing_else(report: Report) -> None:
    text = to_html(report)
    policy = text.split('Content-Security-Policy" content="')[1].split('"')[0]
    rules = dict(rule.strip().split(" ", 1) for rule in unescape(policy).split(";"))
    assert rules["default-src"] == "'none'"
    assert all(source.startswith("'sha256-") for source in rules["script-src"].split())
    assert text.count("<script") - text.count("<script>") == 1 + document._plotly().count("<script")
    own = text.replace(document._plotly(), "")
    assert "http://" not in own
    assert "https://" not in own


def test_data_cannot_end_its_element() -> None:
    text = document._json({"name": "</script><!--\u2028&amp;"})
    assert not set(text) & set("<>&\u2028")


def test_a_report_without_any_time_is_a_page_too(report: Report) -> None:
    nothing = replace(
        report.facts.breakdown,
        wall_ns=0,
        rows=tuple(replace(row, ledger_ns=0, subtree_ledger_ns=0) for row in report.facts.breakdown.rows[-2:]),
    )
    page = to_html(replace(report, facts=replace(report.facts, breakdown=nothing, operations=())))
    assert "Nothing was recorded" in page


def test_poor_speed_is_a_warning(report: Report) -> None:
    for ratio, warned in ((0.49, True), (0.51, False)):
        expected = replace(report.findings.expectation, ratio=ratio)
        page = to_html(replace(report, findings=replace(report.findings, expectation=expected)))
        assert ("of the speed that its parts allow" in page) is warned
        assert ('class="warning"' in page) is warned


def test_the_first_advice_is_what_to_try_first(report: Report) -> None:
    title, evidence, action, check = texts = ("Send steps in batches.", "3 of 4 ms wait", "Use 8 envs.", "Run it.")
    advice = Advice("rule", title, ("env_step",), (evidence,), action, (1.2, 2.0), check)
    page = to_html(replace(report, findings=replace(report.findings, advice=(advice,))))
    findings = page[page.index('id="findings"') : page.index('id="tree"')]
    assert "Try first" in findings
    for text in texts:
        assert text in findings
        assert page.count(text) == 1, "a finding is in the page once"


def test_the_browser_writes_figures_as_the_text_report_does(page: Any) -> None:
    values = [0, 1, 999, 999.6, 1234, 9_994, 9_996, 99_940, 123_456, 99_960_000, 1.5e9, 59.96e9, 3599e9, 3601e9, 9e15]
    script = f"values => {{ {file('figures.js')}; return values.map(duration); }}"
    assert page.evaluate(script, values) == [duration(value) for value in values]
    script = f"values => {{ {file('figures.js')}; return values.map(rate); }}"
    rates = [0.1234, 1.2345, 12.345, 99.9, 99.96, 1234.5678, 1e6]
    assert page.evaluate(script, rates) == [rate(value) for value in rates]


def test_without_plotly_the_error_says_what_to_install(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingLibraryError, match=r"rlprof\[report\]"):
        to_html(report)
