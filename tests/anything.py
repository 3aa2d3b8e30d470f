"""Values of any type that facts are made of: a report may come from a file of unknown origin."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from rlprof.ledger.catalogue import _CATEGORY_OF, CATEGORIES

INTEGERS = st.sampled_from([0, 1, 2, 5, 20, 100, 1_000, 10**6, 10**9, 2**31, 2**62, 10**400, -1, -(2**62)])
FLOATS = st.sampled_from([0.0, 0.5, 1.0, 12.5, 100.0, 1e6, 1e300, 5e-324, -1.0, -1e300])
Numbers = st.SearchStrategy[Any]
WORDS = st.sampled_from(["unattributed", "rlprof", "outside spans", "", *CATEGORIES, *_CATEGORY_OF])


def of_type(kind: Any, integers: Numbers = INTEGERS, floats: Numbers = FLOATS) -> st.SearchStrategy[Any]:
    """Values of a type as the facts are made of them, extreme ones first."""

    def inner(kind: Any) -> st.SearchStrategy[Any]:
        return of_type(kind, integers, floats)

    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: inner(hints[field.name]) for field in fields(kind)})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return st.one_of([inner(argument) for argument in arguments])
    if origin is tuple:
        # Long enough at times for a trend to be looked for.
        few = st.lists(inner(arguments[0]), max_size=4)
        plain = arguments[0] in (int, float) or get_origin(arguments[0]) is types.UnionType
        many = st.lists(inner(arguments[0]), min_size=30, max_size=40) if plain else few
        return st.one_of(few, many).map(tuple)
    if origin is dict:
        return st.dictionaries(inner(arguments[0]), inner(arguments[1]), max_size=3)
    return {int: integers, float: floats, str: WORDS, bool: st.booleans(), type(None): st.none()}[kind]
