"""The words and figures of the HTML report that need no browser to be checked."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pages import session

from rlprof import Profiler
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.expectation import Loss
from rlprof.analysis.figures import duration
from rlprof.analysis.parallelism import Capacity
from rlprof.analysis.report import Report
from rlprof.render.html.findings import command
from rlprof.render.html.markup import sentence
from rlprof.report.html.charts import chart_data
from rlprof.report.html.document import to_html
from rlprof.report.text import to_text


def section(page: str, id: str) -> str:
    start = page.index(f'<section id="{id}"')
    return page[start : page.index("</section>", start)]


def shares(markup: str) -> dict[str, str]:
    """The first percentage of each table row, by the name in its first cell."""
    found = {}
    for row in re.findall(r"<tr.*?</tr>", markup):
        first, *figures = (re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row))
        if share := next((figure for figure in figures if figure.endswith("%")), None):
            found[first] = share
    return found


def shares_in_text(report: Report) -> list[dict[str, str]]:
    """The same for the first two tables of the text report: the call tree and the categories."""
    text = to_text(report).split("Where the training time went")[1]
    tables = text.split("\n\n")[:2]
    rows = r"^ *(\S+)(?: \(±[^)]*\))? .*?(\d+\.\d%)"
    return [dict(re.findall(rows, table, re.MULTILINE)) for table in tables]


def test_shares_are_those_of_the_text_report(report: Report) -> None:
    whole = report.facts.breakdown
    # Shifted, as rounding to a sum of 100.0 shifts them. This shows if the page computes them again.
    shifted = replace(
        whole,
        rows=tuple(replace(row, share=row.share + 0.1) for row in whole.rows),
        categories=tuple(replace(item, share=item.share + 0.2) for item in whole.categories),
    )
    report = replace(report, facts=replace(report.facts, breakdown=shifted))
    page = to_html(report)
    tree, categories = shares_in_text(report)
    assert len(tree) == len(whole.rows)
    assert shares(section(page, "tree")) == tree
    with_time = {item.name for item in whole.categories if item.ledger_ns}
    assert shares(section(page, "categories")) == {name: categories[name] for name in categories if name in with_time}
    leaves = {"env_step", "policy_forward", "backward", "optimizer_step", "unattributed", "rlprof"}
    in_operations = shares(section(page, "operations"))
    assert {name: in_operations[name] for name in leaves} == {name: tree[name] for name in leaves}
    lost = shares(section(page, "expectation"))
    assert (lost["unattributed"], lost["rlprof"]) == (tree["unattributed"], tree["rlprof"])
    drawn = chart_data(report)["tree"]
    boxes = dict(zip(drawn["names"], drawn["texts"]))
    assert {name: boxes[name] for name in tree if name in boxes}.items() <= tree.items()
    assert leaves - {"unattributed"} <= boxes.keys()


def test_one_of_a_thing_is_singular(folder: Path) -> None:
    def work(profiler: Profiler) -> None:
        with profiler.iteration(), profiler.profile("env_step"):
            profiler.add_steps(1)
            time.sleep(0.01)

    found = session(folder, "one", work)
    facts = replace(
        found.facts,
        breakdown=replace(found.facts.breakdown, open_spans=1),
        session=replace(found.facts.session, cores=1, machine_cores=1),
        parallelism=replace(found.facts.parallelism, cores=1),
        resources=replace(found.facts.resources, machine_cpu_mean=50.0, children_most=1, children_rss_peak=2**20),
    )
    page = to_html(replace(found, facts=facts))
    read = re.sub(r"<[^>]*>", " ", page[page.index("<header") : page.index("<noscript")])
    for noun in ("span", "lane", "core", "rollout", "iteration", "process"):
        assert re.search(rf"(?<![\d.,])1 {noun}\b", read), noun
        assert not re.search(rf"(?<![\d.,])1 {noun}e?s\b", read), noun


def test_what_has_no_time_in_all_of_the_run_is_left_out(report: Report) -> None:
    facts, findings = report.facts, report.findings
    none = (0,) * len(facts.series)
    ledger = {name: none if name == "rlprof" else ns for name, ns in facts.series.ledger_ns.items()}
    operations = (*facts.operations, replace(facts.operations[0], operation="never", calls=0, ledger_ns=0))
    *rows, unattributed, rlprof = facts.breakdown.rows
    never = replace(rows[0], operation="never", depth=0, calls=0, ledger_ns=0, subtree_ledger_ns=0)
    only_called = replace(never, operation="only_called", calls=1)
    nothing = {"ledger_ns": 0, "share": 0.0}
    portions = [replace(item, **nothing) if item.name == "rlprof" else item for item in facts.breakdown.categories]
    breakdown = replace(
        facts.breakdown,
        rows=(*rows, never, only_called, unattributed, rlprof),
        categories=(replace(portions[0], name="never", **nothing), *portions),
    )
    facts = replace(
        facts,
        breakdown=breakdown,
        operations=operations,
        series=replace(facts.series, ledger_ns=ledger | {"never": none}),
        parallelism=replace(facts.parallelism, capacity=(*facts.parallelism.capacity, Capacity("never", 0, 0.0))),
    )
    expected = replace(findings.expectation, losses=(*findings.expectation.losses, Loss("never", 0)))
    report = replace(report, facts=facts, findings=replace(findings, expectation=expected))
    areas = {area["name"] for area in chart_data(report)["ledger"]["areas"]}
    assert areas.isdisjoint({"never", "rlprof"})
    assert areas >= {"env_step", "unattributed"}
    page = to_html(report)
    for id in ("tree", "operations", "categories", "parallelism", "expectation"):
        assert "never" not in section(page, id), id
    # A zero that was measured is a zero.
    assert "only_called" in section(page, "tree")
    assert shares(section(page, "categories"))["rlprof"] == "0.0%"


def test_code_in_a_sentence_is_code_and_stays_text() -> None:
    assert sentence("Run `rlprof report` & see `a<b>`.") == (
        "Run <code>rlprof report</code> &amp; see <code>a&lt;b&gt;</code>."
    )
    assert sentence("`<img src=x>") == "`&lt;img src=x&gt;"
    assert sentence("``") == "``"


def test_a_finding_shows_its_code(report: Report) -> None:
    finding = Finding("rule", "Use `a`.", None, ("env_step",), ("Saw `b`.",), "Call `c`.", None, "Run `d`.")
    page = to_html(replace(report, findings=replace(report.findings, findings=(finding,))))
    for text in "abcd":
        assert f"<code>{text}</code>" in section(page, "findings")
    assert "`" not in section(page, "findings")


def test_the_notes_have_the_cost_of_rlprof(report: Report) -> None:
    used = replace(report.facts.resources, flushing_share=0.4, sampling_share=0.05)
    page = to_html(replace(report, facts=replace(report.facts, resources=used)))
    own = report.facts.breakdown.rows[-1]
    assert f"{duration(own.ledger_ns)} ± {duration(own.uncertainty_ns)}" in section(page, "notes")
    assert "0.40% of one core to write the session, and 0.05% to sample" in section(page, "notes")


@pytest.mark.parametrize(
    ("text", "copied"), [("rlprof tune 'a b'", True), ("rlprof \x1b[2J", False), ("x" * 9_999, False)]
)
def test_only_a_command_that_is_shown_as_it_is_can_be_copied(text: str, copied: bool) -> None:
    assert ("data-copy" in command(text)) is copied
