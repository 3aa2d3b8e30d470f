"""The HTML report, opened in a real browser and read as a person would."""

from __future__ import annotations

import importlib.util
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from itertools import count as numbers
from pathlib import Path
from typing import Any

import pytest
from components import missing

from rlprof import Profiler, record
from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.figures import count, duration, percent, rate, size
from rlprof.analysis.report import Report, build_report
from rlprof.analysis.resources import Samples
from rlprof.analysis.series import Series
from rlprof.errors import MissingLibraryError
from rlprof.report.html import document
from rlprof.report.html.document import to_html
from rlprof.report.names import literal
from rlprof.session.reader import Session

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
CHARTS = ("icicle", "ledger", "distribution", "resources")
LIGHT_INK, DARK_INK = "#1a1d23", "#e8ebf0"


def session(folder: Path, name: str, work: Callable[[Profiler], None]) -> Report:
    """The report of a recording made by a profiler of its own."""
    profiler = Profiler()
    with record(name, dir=folder, profiler=profiler, settings={"envs": 8, "<i>": "</dd>"}) as recording:
        work(profiler)
    with Session(recording.folder) as read:
        report = build_report(read)
    report.facts.check()
    return report


def training(profiler: Profiler) -> None:
    """Four iterations on the driver, with a thread that works beside it."""

    def beside() -> None:
        with profiler.profile("telemetry"):
            time.sleep(0.02)

    for _ in range(4):
        thread = threading.Thread(target=beside, name="beside")
        thread.start()
        with profiler.iteration():
            for step in range(30):
                with profiler.profile("policy_forward"):
                    time.sleep(0.0002)
                with profiler.profile("env_step"):
                    time.sleep(0.0001 * 1.12**step)  # so that no two percentiles are one
                profiler.add_steps(8)
            with profiler.profile("update"):
                with profiler.profile("backward"):
                    time.sleep(0.02)
                with profiler.profile("optimizer_step", track_memory=True):
                    time.sleep(0.002)
        thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("html")


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    """A training, with samples of a machine that could not always be read."""
    found = session(folder, "cartpole", training)
    samples = Samples(
        time_ns=tuple(range(0, 6_000_000_000, 1_000_000_000)),
        cpu=(90.0, 95.0, None, None, 80.0, 85.0),
        children_cpu=(None,) * 6,
        machine_cpu=(50.0,) * 6,
        rss=(2**28, 2**28, None, 2**28, 2**28, 2**28),
        children_rss=(None,) * 6,
        machine_available=(2**33,) * 6,
        held_up=(0.0,) * 6,
        device_busy=(None,) * 6,
        device_memory=(None,) * 6,
    )
    resources = replace(found.facts.resources, samples=samples, cpu_mean=87.5, rss_peak=2**28)
    return replace(found, facts=replace(found.facts, resources=resources))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if importlib.util.find_spec("playwright") is None:
        missing("playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        missing("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


class Opener:
    """Opens reports, and remembers what a page asked for or complained about."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self._browser, self._folder = browser, folder
        self._number = numbers()
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def __call__(self, report: Report, width: int = 1280, scheme: str = "light") -> Any:
        path = self._folder / f"report_{next(self._number)}.html"
        path.write_text(to_html(report), encoding="utf-8")
        page = self._browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())
        self.requests.remove(path.as_uri())
        return page


@pytest.fixture(scope="module")
def opener(browser: Any, folder: Path) -> Opener:
    return Opener(browser, folder)


@pytest.fixture(autouse=True)
def silent(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test does to a page, it neither complains nor asks the network for anything."""
    yield
    if "opener" in request.fixturenames:
        opener = request.getfixturevalue("opener")
        assert (opener.complaints, opener.requests) == ([], [])


@pytest.fixture(scope="module")
def shared(opener: Opener, report: Report) -> Any:
    return opener(report)


@pytest.fixture
def page(shared: Any) -> Iterator[Any]:
    """The report's page in the light on a desk, however the test before left it."""
    yield shared
    shared.set_viewport_size({"width": 1280, "height": 900})
    shared.emulate_media(color_scheme="light", media="screen")


def rows_of(page: Any, selector: str) -> list[list[str]]:
    script = "rows => rows.map(row => Array.from(row.cells, cell => cell.textContent))"
    found: list[list[str]] = page.locator(f"{selector} tr").evaluate_all(script)
    return found


def chart(page: Any, id: str, what: str) -> Any:
    return page.evaluate(f"() => document.getElementById('{id}').{what}")


def until(page: Any, condition: str) -> None:
    """Wait for it from outside: the page's policy forbids the way playwright would wait inside."""
    end = time.monotonic() + 10
    while not page.evaluate(f"() => {condition}"):
        assert time.monotonic() < end, condition
        time.sleep(0.02)


def slice_named(page: Any, name: str) -> Any:
    return page.locator("#icicle g.slice", has_text=name).first


def overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def test_the_operations_table_has_the_reports_figures(page: Any, report: Report) -> None:
    header, *_ = rows_of(page, "#operations-table thead")
    found = {name: dict(zip(header[1:], cells)) for name, *cells in rows_of(page, "#operations-table tbody")}
    assert list(found) == [operation.operation for operation in report.facts.operations]
    for operation in report.facts.operations:
        times = {"mean": operation.mean_ns, "p50": operation.p50_ns, "p95": operation.p95_ns, "p99": operation.p99_ns}
        times |= {"time": operation.ledger_ns, "total": operation.busy_ns}
        times |= {"min": operation.min_ns, "max": operation.max_ns}
        expected = {name: duration(ns) for name, ns in times.items() if ns is not None}
        expected |= {"share": percent(operation.share), "calls": count(operation.calls)}
        expected["CPU"] = "" if operation.cpu_percent is None else f"{operation.cpu_percent:.0f}%"
        expected["mem peak"] = "" if operation.memory_peak is None else size(operation.memory_peak)
        assert {name: found[operation.operation].get(name, "") for name in expected} == expected
    extra = [cells[:3] for cells in rows_of(page, "#operations-table tfoot")]
    rows = report.facts.breakdown.rows[-2:]
    assert extra == [[row.operation, percent(row.share), duration(row.ledger_ns)] for row in rows]


def test_the_verdict_has_the_reports_figures(page: Any, report: Report) -> None:
    shown = page.locator("#verdict b").all_text_contents()
    facts = report.facts
    assert facts.progress.steps_per_second is not None
    assert shown[:3] == [
        rate(facts.progress.steps_per_second),
        percent(facts.breakdown.largest.share),
        duration(facts.breakdown.wall_ns),
    ]


def test_every_section_stands_in_its_place(page: Any) -> None:
    assert page.locator("h1").text_content() == "cartpole"
    order = page.locator("main section").evaluate_all("sections => sections.map(section => section.id)")
    assert order == [
        "verdict", "findings", "tree", "iterations", "durations", "machine", "operations", "rollout", "categories",
        "parallelism", "expectation", "notes",
    ]  # fmt: skip
    assert "bottleneck" in page.locator("#rollout").text_content()
    shares = [float(cells[1].rstrip("%")) for cells in rows_of(page, "#parallelism .bars:first-of-type tbody")]
    assert (
        sum(shares) == pytest.approx(100.0, abs=1e-6) or "not measured" in page.locator("#parallelism").text_content()
    )


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
    assert operation is not None
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
  for (const slice of document.querySelectorAll('#icicle g.slice')) {
    const [path, text] = [slice.querySelector('path'), slice.querySelector('text')];
    if (!text || !text.textContent) continue;
    const colours = [getComputedStyle(text).fill, getComputedStyle(path).fill].map(numbers);
    found.push([contrast(...colours), 'slice ' + text.textContent]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    ink = DARK_INK if scheme == "dark" else LIGHT_INK
    until(page, f"document.getElementById('icicle').layout.font.color === '{ink}'")
    found = page.evaluate(CONTRAST)
    assert len(found) > 100
    assert any(text.startswith("slice") for _, text in found)
    assert [(round(contrast, 2), text) for contrast, text in found if contrast < 4.5] == []


def test_a_phone_does_not_scroll_sideways(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, "document.getElementById('icicle').data[0].maxdepth === 4")
    until(page, "document.documentElement.scrollWidth <= innerWidth")
    table = page.locator(".tall").evaluate("box => [box.scrollWidth > box.clientWidth, box.clientWidth <= innerWidth]")
    assert table == [True, True]


def test_charts_and_scrolling_boxes_have_names(page: Any) -> None:
    for id in CHARTS:
        assert page.locator(f"#{id}").get_attribute("aria-label")
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


def test_names_are_shown_and_not_interpreted(opener: Opener, folder: Path) -> None:
    found = session(folder, "nasty", nasty_training)
    advice = Advice("rule", NASTY[0], NASTY[:2], NASTY, NASTY[1], (1.0, 1.8), NASTY[2])
    info = replace(found.facts.session, name=NASTY[0], command=NASTY)
    found = replace(found, facts=replace(found.facts, session=info), findings=replace(found.findings, advice=(advice,)))
    page = opener(found, width=390, scheme="dark")
    assert page.evaluate("window.hacked") is None
    assert page.locator("h1").text_content() == NASTY[0]
    assert page.locator(".advice h3").text_content() == NASTY[0]
    assert page.locator("main img, main b b, main a, svg a, main script").count() == 0
    shown = {cells[0] for cells in rows_of(page, "#operations-table tbody")}
    assert shown >= {literal(name) for name in NASTY if len(name) < 100}
    drawn = [" ".join(text.split()) for text in page.locator("#icicle g.slice text").all_text_contents()]
    for name in ("<b>bold</b>", "{{data}}", "%{label} $x$ &lt;"):
        assert any(text.startswith(name) for text in drawn), (name, drawn)
    slice_named(page, "<b>bold</b>").hover()
    page.wait_for_selector("#icicle .hoverlayer text")
    assert "<b>bold</b>" in page.locator("#icicle .hoverlayer text").first.text_content()
    assert overflow(page) <= 0


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


def test_a_session_with_nothing_in_it_says_so_in_every_panel(opener: Opener, folder: Path) -> None:
    page = opener(session(folder, "empty", lambda _: None))
    for id in ("iterations", "durations", "operations", "rollout", "parallelism", "expectation"):
        assert page.locator(f"#{id} .empty").text_content()
    assert page.locator("#iterations button, #durations select").count() == 0
    empty = page.locator("main section").evaluate_all("all => all.filter(one => one.innerText.trim().length < 30)")
    assert empty == []


def test_a_report_without_any_time_is_a_page_too(report: Report) -> None:
    nothing = replace(
        report.facts.breakdown,
        wall_ns=0,
        rows=tuple(replace(row, ledger_ns=0, subtree_ledger_ns=0) for row in report.facts.breakdown.rows[-2:]),
    )
    page = to_html(replace(report, facts=replace(report.facts, breakdown=nothing, operations=())))
    assert "Nothing was recorded" in page


def test_a_session_without_iterations_still_has_its_other_charts(opener: Opener, folder: Path) -> None:
    def work(profiler: Profiler) -> None:
        with profiler.profile("env_step"):
            time.sleep(0.01)

    page = opener(session(folder, "no_iterations", work))
    assert "No iteration was marked" in page.locator("#ledger").text_content()
    assert slice_named(page, "env_step").count() == 1
    assert chart(page, "distribution", "data[0].y") == [1]


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
    assert overflow(page) <= 0


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
    start = time.perf_counter()
    text = to_html(found)
    assert time.perf_counter() - start < 2
    assert len(text.encode()) <= 8e6
    page = opener(found)
    assert page.locator("#operations-table tbody tr").count() == 2_000
    traces = chart(page, "ledger", "data.map(trace => [trace.name, trace.x.length])")
    assert len(traces) == 10 + 1 + 2 + 1
    assert {length for _, length in traces} == {300}
    page.get_by_role("button", name="ms per iteration").click()
    areas = chart(page, "ledger", "data.filter(trace => trace.stackgroup).map(trace => trace.y)")
    assert [sum(values) for values in zip(*areas)] == pytest.approx([2_002 / 1e6] * 300)  # a point is ten iterations
    page.locator("#filter").fill("operation_1234")
    assert page.locator("#operations-table tbody tr:visible").count() == 1
    assert "Not drawn" in page.locator("#icicle-hidden").text_content()


def test_poor_speed_is_a_warning(report: Report) -> None:
    assert report.findings.expectation is not None
    for ratio, warned in ((0.49, True), (0.51, False)):
        expected = replace(report.findings.expectation, ratio=ratio)
        page = to_html(replace(report, findings=replace(report.findings, expectation=expected)))
        assert ("Below half of what its parts could do" in page) is warned
        assert ('class="warning"' in page) is warned


def test_the_first_advice_is_what_to_try_first(report: Report) -> None:
    advice = Advice(
        "rule", "Send steps in batches.", ("env_step",), ("3 of 4 ms wait",), "Use 8 envs.", (1.2, 2.0), "Run it."
    )
    page = to_html(replace(report, findings=replace(report.findings, advice=(advice,))))
    verdict = page[page.index('id="verdict"') : page.index('id="findings"')]
    for text in ("Send steps in batches.", "Use 8 envs.", "1.2x to 2.0x as fast"):
        assert text in verdict
    for text in ("3 of 4 ms wait", "Run it.", "Expected gain"):
        assert text in page


def test_the_browser_writes_figures_as_the_text_report_does(page: Any) -> None:
    values = [0, 1, 999, 999.6, 1234, 9_994, 9_996, 99_940, 123_456, 99_960_000, 1.5e9, 59.96e9, 3599e9, 3601e9, 9e15]
    script = f"values => {{ {document._file('figures.js')}; return values.map(duration); }}"
    assert page.evaluate(script, values) == [duration(value) for value in values]
    script = f"values => {{ {document._file('figures.js')}; return values.map(rate); }}"
    rates = [0.1234, 1.2345, 12.345, 99.9, 99.96, 1234.5678, 1e6]
    assert page.evaluate(script, rates) == [rate(value) for value in rates]


def test_without_plotly_the_error_says_what_to_install(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingLibraryError, match=r"rlprof\[report\]"):
        to_html(report)
