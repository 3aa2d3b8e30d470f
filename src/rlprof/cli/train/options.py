"""The flags of a workload, made from the dataclass of its settings."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click

from rlprof.cli.help import Option
from rlprof.workloads.settings import FLAGS, Settings, describe


def options_of(cls: type[Settings]) -> list[Option]:
    """One option per field without parts. Options default to None, so that a config file or the field's own default
    decides. The other flags of a field are aliases that the five documents promise."""
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
        if isinstance(shown, bool):
            shown = "on" if shown else "off"
        text = texts.get(field.name, "").removesuffix(".")
        options.append(
            Option(
                [flags[0], field.name],
                aliases=flags[1:],
                type=click.Choice(get_args(hint)) if get_origin(hint) is Literal else hint,
                multiple=several,
                default=() if several else None,
                default_text="" if shown is None else str(shown),
                help=f"{text[:1].upper()}{text[1:]}{'; repeatable' if several else ''}.",
            )
        )
    return options


def given(cls: type[Settings], options: dict[str, Any]) -> dict[str, Any]:
    """Take the settings that were given out of a command's options."""
    found = {field.name: options.pop(field.name) for field in fields(cls) if field.name in options}
    lists = {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
    return {name: value for name, value in lists.items() if value not in (None, [])}


def spread(options: list[click.Option], args: list[str]) -> list[str]:
    """Turn `--devices a b` into `--devices a --devices b`, so that a repeatable option takes several values at once."""
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


def _bare(hint: Any) -> tuple[Any, bool]:
    """The type without None, bounds and tuple, and True if it takes several values."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        (inner,) = (part for part in get_args(hint) if part is not type(None))
        return _bare(inner)
    if get_origin(hint) is tuple:
        return _bare(get_args(hint)[0])[0], True
    return hint, False
