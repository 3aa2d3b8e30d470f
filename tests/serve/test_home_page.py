"""The page of all runs in a real browser: any number of runs, any names."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from looking import CONTRAST, CUT_OFF, overflow
from serving import NASTY, recorded, serving, until, work
from visiting import Visitor

pytestmark = pytest.mark.long


@pytest.mark.parametrize("count", [0, 1, 3, 200])
def test_the_table_of_runs_fits_whatever_its_length(browser: Any, tmp_path: Path, count: int) -> None:
    if count:
        first = recorded(tmp_path, "first", lambda profiler: work(profiler, 2), envs=1)
        for number in range(1, count):
            shutil.copytree(first, tmp_path / f"copy_of_a_run_{number:03}_20260101-{number:06}")
    with serving(tmp_path) as served:
        visitor = Visitor(browser, served)
        for width, scheme in ((1280, "light"), (390, "dark")):
            page = visitor("/", width=width, scheme=scheme)
            if count:
                until(lambda page=page: page.locator("#runs tbody tr").count() == count)
            else:
                assert "There is no run in this folder yet" in page.inner_text("main")
            assert overflow(page) <= 0
            assert page.evaluate(CUT_OFF) == []
            found = page.evaluate(CONTRAST)
            assert [(round(contrast, 2), text) for contrast, text in found if contrast < 4.5] == []
        assert visitor.complaints == []


def test_runs_are_filtered_sorted_and_chosen_and_the_address_keeps_it(browser: Any, tmp_path: Path) -> None:
    for envs, iterations in ((1, 2), (2, 40), (3, 4)):
        recorded(tmp_path, f"ppo{envs}", lambda profiler, most=iterations: work(profiler, most), envs=envs, lr=0.1)
    with serving(tmp_path) as served:
        visitor = Visitor(browser, served)
        page = visitor("/")
        names = page.locator("#runs tbody th a")
        until(lambda: names.count() == 3)
        assert [name[:4] for name in names.all_inner_texts()] == ["ppo3", "ppo2", "ppo1"]
        assert page.locator("#runs .differs").all_inner_texts() == ["envs=3", "envs=2", "envs=1"]
        page.click("[data-key=wall_ns]")
        assert names.first.inner_text().startswith("ppo2")
        assert page.url.endswith("/?sort=wall_ns-descending")
        page.fill("#filter", "envs=1")
        assert [name[:4] for name in names.all_inner_texts()] == ["ppo1"]
        assert page.inner_text("#shown") == "1 of 3 runs"
        page.reload()
        assert [name[:4] for name in names.all_inner_texts()] == ["ppo1"]
        page.fill("#filter", "nothing like it")
        assert page.inner_text("#none") == "No run has all of these words."
        page.fill("#filter", "")
        assert page.locator("#compare").is_disabled()
        for name in ("ppo1", "ppo3"):
            page.locator(f"[aria-label^='Compare {name}']").check()
        page.click("#compare")
        page.wait_for_url("**/compare?*")
        assert "a=ppo1" in page.url
        assert "Is B faster than A?" in page.inner_text("h1")
        page.go_back()
        # Some browsers restore the ticks, and some do not. What is shown is what is ticked.
        until(lambda: page.locator("#runs input").count() == 3)
        ticked = page.locator("#runs input:checked").count()
        assert page.locator("#compare").is_disabled() == (ticked != 2)
        assert (page.inner_text("#chosen") == "Tick two runs to compare them.") == (ticked == 0)
        for name in ("ppo1", "ppo3"):
            page.locator(f"[aria-label^='Compare {name}']").check()
        page.fill("#filter", "envs=1")
        assert page.inner_text("#chosen").count("(hidden by the filter)") == 1
        page.fill("#filter", "")
        assert "hidden" not in page.inner_text("#chosen")
        recorded(tmp_path, "new", envs=4)
        until(lambda: names.count() == 4)
        assert visitor.complaints == []


def test_settings_that_are_called_as_parts_of_every_object_are_settings(browser: Any, tmp_path: Path) -> None:
    recorded(tmp_path, "first", constructor="a", __proto__="b", toString="c")
    recorded(tmp_path, "second")
    with serving(tmp_path) as served:
        visitor = Visitor(browser, served)
        page = visitor("/?sort=constructor-ascending")
        until(lambda: page.locator("#runs tbody tr").count() == 2)
        assert page.locator("#runs .differs").all_inner_texts() == ["", "__proto__=b  constructor=a  toString=c"]
        assert visitor.complaints == []


def test_hostile_names_are_shown_and_not_interpreted(browser: Any, tmp_path: Path) -> None:
    def hostile(profiler: Any) -> None:
        for _ in range(3):
            with profiler.iteration():
                for name in NASTY:
                    with profiler.profile(name):
                        time.sleep(0.0003)

    run = recorded(tmp_path, NASTY[0], hostile, **{NASTY[1]: NASTY[2], NASTY[2]: NASTY[0]})
    named = run.rename(tmp_path / "<img src=x onerror=window.hacked=1>_20260101-000000")
    recorded(tmp_path, "other", hostile)
    os.mkdir(tmp_path / "<b>unreadable")
    (tmp_path / "<b>unreadable" / "session.db").write_bytes(b"x")
    with serving(tmp_path) as served:
        visitor = Visitor(browser, served)
        page = visitor("/", width=390)
        until(lambda: page.locator("#runs tbody tr").count() == 3)
        assert named.name in page.locator("#runs tbody th a").all_inner_texts()
        page.click(f"text={named.name}")
        assert page.inner_text("h1") == NASTY[0]
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main b b, #live img").count() == 0
        assert overflow(page) <= 0
        assert visitor.complaints == []
