"""The page of a comparison in a browser, on a screen and on a phone."""

from __future__ import annotations

import importlib.util
import shutil

import pytest
from components import missing

from rlprof.analysis.comparison import MeasuredPair, compare
from rlprof.analysis.work import Measured
from rlprof.compare.html import to_html

LONG = "a_very_long_name_of_an_operation_that_somebody_really_wrote_into_a_program"


def found(faster, steps=10):
    """x is faster in B for certain; y varies a millionfold, so that it is off the scale; LONG is the same."""
    a = Measured(1e7, 1e7, 10, {"x": 5e6, "y": 1e3, LONG: 4.9e6})
    b = [{"x": 5e6 / faster + noise, "y": 10.0 ** (6 - noise % 2 * 6), LONG: 4.9e6 + noise} for noise in range(4)]
    pairs = [MeasuredPair(a, Measured(9.9e6 / faster + 1e3 * n, 9e6, steps, one)) for n, one in enumerate(b)]
    return compare(f"rlprof run train.py --{LONG}", "rlprof run train.py", pairs)


@pytest.fixture(scope="module")
def browser():
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


CUT_OFF = """() => Array.from(document.querySelectorAll("body *")).filter(
  one => one.clientWidth && (one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > innerWidth)
).map(one => one.outerHTML.slice(0, 80))"""


@pytest.mark.long
@pytest.mark.parametrize("width", [400, 700, 1280])
@pytest.mark.parametrize("comparison", [found(2.0), found(1.0), found(1.0, 50)], ids=["faster", "same", "other work"])
def test_nothing_is_cut_off(browser, tmp_path, comparison, width):
    (tmp_path / "page.html").write_text(to_html(comparison))
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.long
def test_the_axis_is_logarithmic(browser, tmp_path):
    """Half and twice the speed are equally far from no difference."""
    (tmp_path / "page.html").write_text(to_html(found(2.0)))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((tmp_path / "page.html").as_uri())
    script = "texts => texts.map(one => [one.textContent, Number(one.getAttribute('x'))])"
    places = dict(page.locator(".forest thead text").evaluate_all(script))
    assert places["1x"] - places["0.5x"] == pytest.approx(places["2x"] - places["1x"])
    assert page.locator(".forest tbody polygon").count() == 2  # y, on both sides
    page.close()
