"""A finding as a card of an HTML page."""

from __future__ import annotations

from rlprof.analysis.advice.check import changed_copy
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.code import Line
from rlprof.render.html.markup import Markup, element, plain_name, prose, sentence
from rlprof.render.names import short_path

_COMMAND = "rlprof "


def finding_card(finding: Finding, number: int, gain: str | None) -> Markup:
    """The cause, its line of code, what to change, what that brings, and the command that shows whether it did."""
    badges = [
        element("span", text, class_="badge good") for text in ("Try first" if number == 1 else None, gain) if text
    ]
    names = [element("code", plain_name(name)) for name in finding.operations[:8]]
    return element(
        "article",
        element("h3", f"{number}. ", sentence(finding.cause)),
        element("p", *badges, *names, class_="chips"),
        _place(finding.place) if finding.place is not None else None,
        element("p", element("b", "Change: "), sentence(finding.change)),
        _check(finding.check),
        element(
            "details",
            element("summary", "Evidence"),
            element("ul", *(element("li", sentence(evidence)) for evidence in finding.evidence)),
        )
        if finding.evidence
        else None,
        class_="finding",
    )


def _place(line: Line) -> Markup:
    function = f" in {line.function}" if line.function != "<module>" else ""
    where = element("span", element("b", short_path(prose(line.where)), title=prose(line.where)), prose(function))
    source = element("code", prose(line.source), class_="source") if line.source else None
    return element("p", where, source, class_="place")


def _check(check: str) -> Markup:
    """A command has a box of its own, in which a script puts a button that copies it."""
    if check.startswith(_COMMAND):
        copy = changed_copy(check)
        hint = element("span", prose(f"Make the change in a copy, {copy}, then run:"), class_="hint") if copy else None
        return element("div", element("b", "Check: "), hint, command(check), class_="check")
    return element("p", element("b", "Check: "), sentence(check))


def command(text: str) -> Markup:
    """A command line to copy, in as many lines as it needs. One that cannot be shown as it is, because it is too long
    or has control characters, is not for copying: what is pasted into a terminal should be what was read."""
    shown = prose(text)
    return element("span", element("code", shown), class_="command", data_copy=text if shown == text else None)
