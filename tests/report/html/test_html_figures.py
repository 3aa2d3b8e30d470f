"""The HTML report shows the report's figures in the words of the text report."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from pages import rows_of

from rlprof.analysis.figures import count, duration, percent, rate, size
from rlprof.analysis.report import Report
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


def test_every_section_stands_in_its_place(page: Any) -> None:
    assert page.locator("h1").text_content() == "cartpole"
    order = page.locator("main section").evaluate_all("sections => sections.map(section => section.id)")
    assert order == [
        "findings", "tree", "code", "lanes", "iterations", "durations", "machine", "operations", "rollout",
        "categories", "parallelism", "expectation", "run", "notes",
    ]  # fmt: skip
    assert "bottleneck" in page.locator("#rollout").text_content()
    shares = [float(cells[1].rstrip("%")) for cells in rows_of(page, "#parallelism .bars:first-of-type tbody")]
    measured = "not measured" not in page.locator("#parallelism").text_content()
    assert not measured or sum(shares) == pytest.approx(100.0, abs=1e-6)


def test_a_click_on_a_column_sorts(page: Any) -> None:
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
    page.locator("#operations-table").get_by_role("button", name="time", exact=True).click()
    assert column(0) == before


def test_the_page_allows_its_own_scripts_and_nothing_else(report: Report) -> None:
    text = to_html(report)
    policy = text.split('Content-Security-Policy" content="')[1].split('"')[0]
    rules = dict(rule.strip().split(" ", 1) for rule in unescape(policy).split(";"))
    assert rules["default-src"] == "'none'"
    assert all(source.startswith("'sha256-") for source in rules["script-src"].split())
    assert text.count("<script") - text.count("<script>") == 1
    assert "http://" not in text
    assert "https://" not in text


def test_data_cannot_end_its_element() -> None:
    text = document._json({"name": "</script><!--\u2028&amp;"})
    assert not set(text) & set("<>&\u2028")


def test_a_report_without_any_time_is_a_page_too(report: Report) -> None:
    nothing = replace(
        report.facts.breakdown,
        wall_ns=0,
        training_ns=0,
        rows=tuple(replace(row, ledger_ns=0, subtree_ledger_ns=0) for row in report.facts.breakdown.rows[-2:]),
    )
    page = to_html(replace(report, facts=replace(report.facts, breakdown=nothing, operations=())))
    assert "Nothing was recorded" in page


def test_the_browser_writes_figures_as_the_text_report_does(page: Any) -> None:
    values = [0, 1, 999, 999.6, 1234, 9_994, 9_996, 99_940, 123_456, 99_960_000, 1.5e9, 59.96e9, 3599e9, 3601e9, 9e15]
    script = f"values => {{ {file('figures.js')}; return values.map(duration); }}"
    assert page.evaluate(script, values) == [duration(value) for value in values]
    script = f"values => {{ {file('figures.js')}; return values.map(rate); }}"
    rates = [0.1234, 1.2345, 12.345, 99.9, 99.96, 1234.5678, 1e6]
    assert page.evaluate(script, rates) == [rate(value) for value in rates]
