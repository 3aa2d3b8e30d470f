"""The flags of a training, made from the dataclass of its settings."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click

from rlprof.workloads.settings import FLAGS, Settings, describe


def options_of(cls: type[Settings]) -> list[click.Option]:
    """One for each field that has no parts. What was not given is None: then a file, or the field's own default,
    decides."""
    texts = describe(cls)
    hints = get_type_hints(cls)
    options = []
    for field in fields(cls):
        if is_dataclass(hints[field.name]):
            continue
        hint, several = _bare(hints[field.name])
        flags = [f"--{field.name.replace('_', '-')}", *field.metadata.get(FLAGS, ())]
        if hint is bool:
            flags = ["/".join((flag, flag.replace("--", "--no-", 1))) for flag in flags]
        shown = " ".join(map(str, field.default)) if several and isinstance(field.default, tuple) else field.default
        default = "" if shown in (None, "") else f"  [{_default(shown, field.name)}]"
        options.append(
            click.Option(
                [*flags, field.name],
                type=click.Choice(get_args(hint)) if get_origin(hint) is Literal else hint,
                multiple=several,
                default=() if several else None,
                help=texts.get(field.name, "").capitalize()[:1] + texts.get(field.name, "")[1:] + default,
                metavar=None if hint is bool or get_origin(hint) is Literal else {int: "N", float: "X"}.get(hint),
            )
        )
    return options


def given(cls: type[Settings], told: dict[str, Any]) -> dict[str, Any]:
    """Takes the flags that were given out of what a command was told."""
    found = {field.name: told.pop(field.name) for field in fields(cls) if field.name in told}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in found.items() if _is_told(value)
    }


def spread(options: list[click.Option], args: list[str]) -> list[str]:
    """`--devices a b` as `--devices a --devices b`: what takes several may take them at once."""
    several = {flag for option in options if option.multiple for flag in option.opts}
    spread: list[str] = []
    current = None
    for word in args:
        if word.startswith("-"):
            current = word if word in several else None
            spread.append(word)
        elif current is not None and spread[-1] != current and "=" not in word:
            spread += [current, word]
        else:
            spread.append(word)
    return spread


def _default(shown: Any, name: str) -> str:
    if isinstance(shown, bool):
        name = name.replace("_", "-")
        return f"default: {name if shown else f'no-{name}'}"
    return f"default: {shown}"


def _is_told(value: Any) -> bool:
    return value is not None and value != ()


def _bare(hint: Any) -> tuple[Any, bool]:
    """Without None, bounds and tuple; and whether there may be several."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        (inner,) = (part for part in get_args(hint) if part is not type(None))
        return _bare(inner)
    if get_origin(hint) is tuple:
        return _bare(get_args(hint)[0])[0], True
    return hint, False
