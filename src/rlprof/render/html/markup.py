"""HTML that escapes what it is given: whoever builds a page from elements cannot forget to."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from rlprof.render.names import literal, shorten

_LONGEST_NAME = 120
_LONGEST_TEXT = 2_000
"""However long the names of a training are, the page has a bound."""
_CODE = re.compile(r"`([^`]+)`")


class Markup(str):
    """Text that is HTML already. Any other str is escaped where it meets an element."""

    __slots__ = ()


Attribute = str | int | float | bool | None
_VOID = {"input"}
"""Elements that have no end tag."""


def element(tag: str, *children: str | None, **attributes: Attribute) -> Markup:
    """An element with its children. None is left out; attributes are written as keywords: `class_`, `aria_label`."""
    inside = "".join(escape(child) for child in children if child is not None)
    return Markup(f"<{tag}{_attributes(attributes)}>{inside}{'' if tag in _VOID else f'</{tag}>'}")


def join(parts: Iterable[str]) -> Markup:
    return Markup("".join(escape(part) for part in parts))


def escape(text: str) -> Markup:
    return text if isinstance(text, Markup) else Markup(html.escape(text))


def _attributes(attributes: dict[str, Attribute]) -> str:
    written = []
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        written.append(" " + name.rstrip("_").replace("_", "-"))
        if value is not True:
            written.append(f'="{html.escape(str(value))}"')
    return "".join(written)


def plain_name(name: str) -> str:
    """An operation's, lane's or session's name on one line and of a bounded length, not yet escaped."""
    # Characters first: cells do not count those that have no width.
    cut = name if len(name) <= 4 * _LONGEST_NAME else name[: 2 * _LONGEST_NAME] + "…" + name[-_LONGEST_NAME:]
    return shorten(literal(cut), _LONGEST_NAME) or "(no name)"


def prose(text: str) -> str:
    """A sentence of a rule or of the user, of a bounded length, not yet escaped."""
    return literal(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…")


def sentence(text: str) -> Markup:
    """Prose of a rule, escaped. What stands between backticks is code, as in the text report's source."""
    parts = _CODE.split(prose(text))
    # Every second part was between backticks.
    return join(element("code", part) if place % 2 else part for place, part in enumerate(parts))


def short_name(name: str, width: int) -> Markup:
    """A name for a narrow column; the whole of it is there for the pointer and for readers of the page."""
    whole = plain_name(name)
    short = shorten(whole, width)
    return escape(whole) if short == whole else element("span", short, title=whole)


def swatch(category: str) -> Markup:
    """A dot in the category's colour. Always beside its name: colour alone tells nothing to some."""
    return element("i", class_="swatch", style=f"background:{colour(category)}", aria_hidden="true")


def bar(share: float, category: str | None = None) -> Markup:
    """A bar of so many percent of its box."""
    width = f"width:{min(100.0, share):.2f}%"
    paint = f";background:{colour(category)}" if category else ""
    filled = element("span", style=width + paint) if share > 0 else None
    return element("span", filled, class_="bar", aria_hidden="true")


def colour(category: str) -> str:
    # Only letters and digits go into a style: a category is a name somebody chose.
    return f"var(--cat-{''.join(char for char in category if char.isalnum())}, var(--cat-other))"


def table(caption: str, headers: Sequence[str], rows: Iterable[Sequence[str]], class_: str = "") -> Markup:
    """A table whose first column names the rows and whose others are figures. It scrolls inside its own box."""
    head = element("tr", *(element("th", header, scope="col") for header in headers))
    body = join(
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in cells))
        for first, *cells in rows
    )
    whole = element("table", element("caption", caption), element("thead", head), element("tbody", body))
    # A region that scrolls must be reachable with the keyboard.
    return element("div", whole, class_=f"scroll {class_}".strip(), tabindex="0", role="region", aria_label=caption)


def figures(items: Iterable[tuple[str, str, str]]) -> Markup:
    """Large figures with what they are and a remark."""
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", what),
                element("dd", element("b", value), element("span", remark) if remark else None),
            )
            for what, value, remark in items
        ),
        class_="figures",
    )
