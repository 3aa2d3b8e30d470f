"""HTML elements that escape their content, so that no caller can forget it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from rlprof.render.names import literal, shorten

_LONGEST_NAME = 120
_LONGEST_TEXT = 2_000
"""Longer names and texts are cut, so that the page has a bounded size."""
_CODE = re.compile(r"`([^`]+)`")


class Markup(str):
    """Text that is already HTML. Any other str is escaped when it is put into an element."""

    __slots__ = ()


Attribute = str | int | float | bool | None
_VOID = {"input", "link", "meta"}
"""Elements without an end tag."""


def element(tag: str, *children: str | None, **attributes: Attribute) -> Markup:
    """An element with its children. None is left out. Attributes are keywords: `class_`, `aria_label`."""
    inside = "".join(escape(child) for child in children if child is not None)
    return Markup(f"<{tag}{_attributes(attributes)}>{inside}{'' if tag in _VOID else f'</{tag}>'}")


def join(parts: Iterable[str]) -> Markup:
    return Markup("".join(escape(part) for part in parts))


def escape(text: str) -> Markup:
    return text if isinstance(text, Markup) else Markup(html.escape(text))


def _attributes(attributes: dict[str, Attribute]) -> str:
    written = ""
    for name, value in attributes.items():
        if value is not None and value is not False:
            written += " " + name.rstrip("_").replace("_", "-")
            written += "" if value is True else f'="{html.escape(str(value))}"'
    return written


def plain_name(name: str) -> str:
    """The name of an operation, lane or session on one line with a bounded length, not yet escaped."""
    # Cut by characters first, because some characters have a width of zero cells.
    cut = name if len(name) <= 4 * _LONGEST_NAME else name[: 2 * _LONGEST_NAME] + "…" + name[-_LONGEST_NAME:]
    return shorten(literal(cut), _LONGEST_NAME) or "(no name)"


def prose(text: str) -> str:
    """A sentence of a rule or of the user with a bounded length, not yet escaped."""
    return literal(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…")


def sentence(text: str) -> Markup:
    """A sentence of a rule, escaped. Text between backticks becomes code."""
    parts = _CODE.split(prose(text))
    # Every second part was between backticks.
    return join(element("code", part) if place % 2 else part for place, part in enumerate(parts))


def short_name(name: str, width: int) -> Markup:
    """A name for a narrow column. The whole name is in its title, for the mouse pointer and for screen readers."""
    whole = plain_name(name)
    short = shorten(whole, width)
    return escape(whole) if short == whole else element("span", short, title=whole)


def swatch(category: str) -> Markup:
    """A dot in the category's colour, always beside its name: not everybody can distinguish colours."""
    return element("i", class_="swatch", style=f"background:{colour(category)}", aria_hidden="true")


def bar(share: float, category: str | None = None) -> Markup:
    """A bar that fills `share` percent of its box."""
    width = f"width:{min(100.0, share):.2f}%"
    paint = f";background:{colour(category)}" if category else ""
    filled = element("span", style=width + paint) if share > 0 else None
    return element("span", filled, class_="bar", aria_hidden="true")


def bar_row(name: str, cells: Iterable[str], share: float, category: str | None = None) -> tuple[str, ...]:
    """A row of a table that ends with a bar. With a category, the name has its colour."""
    return (join([swatch(category), name]) if category else name, *cells, bar(share, category))


def word_of(category: str) -> str:
    """Only letters and digits go into a style or an attribute, because categories may have any name."""
    return "".join(char for char in category if char.isalnum())


def colour(category: str) -> str:
    return f"var(--cat-{word_of(category)}, var(--cat-other))"


def table(caption: str, headers: Sequence[str], rows: Iterable[Sequence[str]], class_: str = "") -> Markup:
    """A table with row names in the first column and figures in the others. It scrolls inside its own box."""
    head = element("tr", *(element("th", header, scope="col") for header in headers))
    body = join(
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in cells))
        for first, *cells in rows
    )
    whole = element("table", element("caption", caption), element("thead", head), element("tbody", body))
    # A region that scrolls must be reachable with the keyboard.
    return element("div", whole, class_=f"scroll {class_}".strip(), tabindex="0", role="region", aria_label=caption)


def figures(items: Iterable[tuple[str, str, str]]) -> Markup:
    """Large figures, each with its name and a remark."""
    entries = []
    for what, value, remark in items:
        shown = element("dd", element("b", value), element("span", remark) if remark else None)
        entries.append(element("div", element("dt", what), shown))
    return element("dl", *entries, class_="figures")
