"""The pages: the runs, one run, a comparison, and a sentence if something is not there."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import quote

from rlprof.analysis.comparison import Comparison
from rlprof.compare.html import to_html
from rlprof.render.html.markup import Markup, element, escape, join, plain_name, prose
from rlprof.render.html.plain import file, fill, fill_in
from rlprof.report.answer import trained
from rlprof.report.html.document import title_of, untrained
from rlprof.serve.assets import head, own
from rlprof.serve.guard import POLICY
from rlprof.serve.home import Home
from rlprof.serve.watch import Watch

_BACK = element("a", "All runs", href="/", class_="home")


def home_page(home: Home) -> str:
    style, script = head("home.js")
    places = {
        "styles": join([style, script]),
        "script": Markup(),
        "folder": escape(plain_name(str(home.runs.parent))),
        "data": _json("runs-data", home.since(0)),
        "since": escape(home.mark),
    }
    return fill_in(own("home.html"), places)


def run_page(watch: Watch, action: str) -> str:
    """The page of a report, with the live strip above it. Without a training yet, only the strip."""
    style, script = head("run.js")
    assert watch.frame is not None
    title = plain_name(watch.frame.name)
    data = join([_json("data", watch.rendered.charts()), _json("frame", watch.frame_text())])
    strip = fill_in(own("strip.html"), {
        "run": escape(quote(watch.folder.name, safe="")),
        "since": escape(watch.mark),
        "action": escape(action),
        "trained": escape("yes" if watch.rendered.trained else ""),
        "live": escape("" if watch.over else "yes"),
        "files": Markup(watch.rendered.parts.get("files", "")),
    })  # fmt: skip
    common: dict[str, Markup] = {"policy": Markup(), "styles": join([style, script]), "script": Markup(), "data": data}
    common |= {"live": Markup(strip), "home": _BACK}
    if watch.rendered.trained:
        assert watch.report is not None
        parts = {name: Markup(text) for name, text in watch.rendered.parts.items()}
        return fill("page.html", {**parts, **common, "title": title_of(watch.report)})
    report = watch.report
    lines = untrained(report) if report is not None and not trained(report.facts) else []
    if not lines:
        lines = [element("p", "The training is starting. The report comes with its first figures.")]
    return fill_in(own("starting.html"), {**common, "title": escape(title), "lines": join(lines)})


def comparison_page(comparison: Comparison) -> tuple[str, str]:
    """The page of `rlprof compare` with a way back, and the policy that allows its style sheet."""
    digest = base64.b64encode(hashlib.sha256(file("page.css").encode()).digest()).decode()
    policy = POLICY.replace("style-src 'self'", f"style-src 'sha256-{digest}'")
    return to_html(comparison, element("nav", element("a", "All runs", href="/"), aria_label="Pages")), policy


def sentence_page(title: str, sentence: str) -> str:
    """Something that cannot be shown, and why."""
    style, _ = head("home.js")
    filled = {"styles": style, "title": escape(title), "sentence": escape(prose(sentence))}
    return fill_in(own("sentence.html"), filled)


def _json(id: str, text: str) -> Markup:
    """JSON that cannot end its script element, nor begin a comment or an entity."""
    safe = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return element("script", Markup(safe), type="application/json", id=id)
