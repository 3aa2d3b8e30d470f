"""Reports, and pages of them in a browser, for the tests of the HTML report."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count as numbers
from pathlib import Path
from typing import Any

from rlprof import Profiler, record
from rlprof.analysis.advice.finding import Finding, Gain
from rlprof.analysis.code import Call, Code, Line
from rlprof.analysis.report import Report, build_report
from rlprof.report.html.document import to_html
from rlprof.session.reader import Session

CHARTS = ("tree-chart", "lanes-chart", "ledger", "distribution", "resources")

LIGHT_INK, DARK_INK = "#1a1d23", "#e8ebf0"


def session(folder: Path, name: str, work: Callable[[Profiler], None]) -> Report:
    """The report of a recording made by a profiler of its own."""
    profiler = Profiler()
    with record(name, dir=folder, profiler=profiler, settings={"envs": 8, "<i>": "</dd>"}, stacks=False) as recording:
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


def one_span(name: str, seconds: float) -> Callable[[Profiler], None]:
    """A program that only has this span."""

    def work(profiler: Profiler) -> None:
        with profiler.profile(name):
            time.sleep(seconds)

    return work


class Opener:
    """Opens reports and records the network requests and console messages of each page."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self._browser, self._folder = browser, folder
        self._number = numbers()
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def __call__(self, report: Report, width: int = 1280, scheme: str = "light", height: int = 900) -> Any:
        path = self._folder / f"report_{next(self._number)}.html"
        path.write_text(to_html(report), encoding="utf-8")
        page = self._browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())
        self.requests.remove(path.as_uri())
        return page


def rows_of(page: Any, selector: str) -> list[list[str]]:
    script = "rows => rows.map(row => Array.from(row.cells, cell => cell.textContent))"
    found: list[list[str]] = page.locator(f"{selector} tr").evaluate_all(script)
    return found


def until(page: Any, condition: str) -> None:
    """Poll from outside: the page's content security policy forbids playwright's own way of waiting."""
    end = time.monotonic() + 10
    while not page.evaluate(f"() => {condition}"):
        assert time.monotonic() < end, condition
        time.sleep(0.02)


def boxes_of(page: Any, id: str) -> list[tuple[str, float]]:
    """Names and heights of the boxes that are drawn, in their order."""
    script = """(boxes, id) => { const { names } = DATA(id); return boxes.map(box => [
      names[box.dataset.place], Number(box.firstChild.getAttribute('height')) + 1]); }"""
    data = "JSON.parse(document.getElementById('data').textContent)"
    chosen = f"{data}.functions[document.getElementById('functions-operation').value]"
    script = script.replace("DATA(id)", f"{data}.tree" if id == "tree" else chosen)
    return [(name, height) for name, height in page.locator(f"#{id}-chart .box").evaluate_all(script, id)]


def box_named(page: Any, name: str, id: str = "tree") -> Any:
    """The first box with this name, however much of it has room."""
    return page.locator(f"#{id}-chart .box[aria-label^={json.dumps(name + ',')}]").first


def overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def _line(number: int, function: str, source: str, ns: float, share: float, *below: str) -> Line:
    return Line("train.py", number, function, source, ns, share, below)


STACK = _line(42, "collect", "batch = torch.tensor([obs[i] for i in range(len(obs))])", 4e8, 0.61, "torch:tensor")
LOOP = _line(57, "train", "returns = [sum(rewards[i:]) for i in range(len(rewards))]", 2e7, 0.30)
STEP = _line(12, "step", "time.sleep(0.0001)", 9e7, 0.97)


def planted(report: Report) -> Report:
    """The report with lines of code, functions and three findings, as if the Python stack had been sampled."""
    main, collect = "train.py:main", "train.py:collect"
    code = Code(
        sampled_ns=report.facts.breakdown.training_ns,
        lines={"env_step": (STEP,), "update": (STACK, LOOP), "unattributed": (LOOP,)},
        calls={
            "env_step": (Call((main, collect, "envs/grid.py:step"), 6e7), Call((main, collect), 3e7)),
            "update": (Call((main, "train.py:learn", collect), 4e7), Call((main, "train.py:learn"), 2e7)),
        },
        growth=(),
    )
    check = "rlprof compare 'run train.py --seed 1' 'run train_changed.py --seed 1'"
    change = "Convert the whole batch at once: `torch.as_tensor(np.stack(obs))`."
    findings = (
        Finding(
            "line_patterns",
            "train.py:42 converts observations one by one: 27.5% of the training time.",
            replace(STACK, share=0.275), ("update",), ("`batch = ...` takes 40.0 ms.",), change,
            Gain(1.36, 1.28, 1.45), check,
        ),
        Finding(
            "python_gae", "Returns are computed in Python.", replace(LOOP, share=0.11), ("update",), ("20.0 ms",),
            "Use `scipy.signal.lfilter`.", Gain(1.12, 1.05, 1.2), check,
        ),
        Finding(
            "memory_growth", "Memory grows by 3 MB per iteration.", None, ("telemetry",), ("From 1 to 13 MB.",),
            "Keep only the last episodes.", None, "Run the program again, and look at `rlprof report`.",
        ),
    )  # fmt: skip
    facts = replace(report.facts, code=code)
    return replace(report, facts=facts, findings=replace(report.findings, findings=findings))
