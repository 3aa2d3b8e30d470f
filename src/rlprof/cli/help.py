"""How `--help` looks: options in groups, defaults as "(default: X)", examples at the end, at most 80 columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_WIDEST_CHOICE = 40
"""Characters. Longer lists of choices are part of the text instead of the flag."""


class Option(click.Option):
    """An option that shows its default in its text, belongs to a group, and may have aliases that are not shown."""

    def __init__(
        self, flags: Sequence[str] | None = None, aliases: Sequence[str] = (), default_text: str = "", **settings: Any
    ) -> None:
        self.aliases = {flag for alias in aliases for flag in alias.split("/") if flag.strip()}
        self.default_text = default_text
        self.group = ""
        super().__init__([*(flags or ()), *aliases], **settings)
        if self.metavar is None and not self.is_flag:
            self.metavar = _metavar(self.type)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:  # noqa: ARG002 - click's signature
        if self.hidden:
            return None
        spellings = [[flag for flag in flags if flag not in self.aliases] for flags in (self.opts, self.secondary_opts)]
        flags = " / ".join(", ".join(sorted(names, key=len)) for names in spellings if names)
        return (flags if self.is_flag else f"{flags} {self.metavar}"), self.text

    @property
    def text(self) -> str:
        """The help text, with the default, and with choices that are too long for the flag."""
        text = self.help or ""
        if isinstance(self.type, click.Choice) and self.metavar == "NAME":
            text = f"{text} One of {', '.join(self.type.choices)}."
        default = self.default_text
        if not default and not self.is_flag and isinstance(self.default, (int, float, str)):
            default = str(self.default)
        return f"{text.removesuffix('.')} (default: {default})." if default else text


def _metavar(type_: click.ParamType[Any]) -> str:
    if isinstance(type_, click.Choice):
        choices = f"[{'|'.join(type_.choices)}]"
        return choices if len(choices) <= _WIDEST_CHOICE else "NAME"
    numbers = {click.IntRange: "N", click.types.IntParamType: "N", click.types.FloatParamType: "X"}
    return next((metavar for kind, metavar in numbers.items() if isinstance(type_, kind)), "TEXT")


class Command(click.Command):
    """A command whose help has its options in groups, and examples at the end."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        self.examples = examples
        super().__init__(*args, **settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):  # arguments are in the usage line
                groups[getattr(option, "group", "")].append(record)
        plain = groups.pop("", [])
        for title, records in {**groups, "Other options" if groups else "Options": plain}.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class Group(click.Group):
    """A group of commands that suggests the right one for a mistyped name."""

    noun = "command"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"No such {self.noun} '{name}'.{_meant(name, self.list_commands(ctx))}", ctx)


def _meant(name: str, names: Sequence[str]) -> str:
    """` Did you mean 'report'?`, or nothing if no name is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - only where a name is wrong

    similar = get_close_matches(name.lower(), names, n=1)
    return f" Did you mean '{similar[0]}'?" if similar else ""


class LazyGroup(Group):
    """Commands by name, with the lines that `--help` shows for them. It imports a command only when the command is
    called, so that `--help` answers at once."""

    def __init__(
        self, *args: Any, lines: Mapping[str, str], load: Callable[[str], click.Command], title: str, **settings: Any
    ) -> None:
        self.lines, self.load, self.title = lines, load, title
        self.noun = title.lower().removesuffix("s")
        super().__init__(*args, **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return self.load(cmd_name) if cmd_name in self.lines else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section(self.title):
            formatter.write_dl(list(self.lines.items()))


class Decorator(Protocol):
    """Adds options to a command."""

    def __call__(self, decorated: Decorated, /) -> Decorated: ...


def option(*flags: str, **settings: Any) -> Decorator:
    return click.option(*flags, cls=Option, **settings)


def command(name: str | None = None, cls: type[Command] = Command, **settings: Any) -> Callable[..., Command]:
    return click.command(name, cls=cls, **settings)


def group(title: str, *options: Decorator) -> Decorator:
    """Add these options to a command under a heading. An empty title is for options without a group."""

    def decorate(decorated: Decorated) -> Decorated:
        for add in reversed(options):
            add(decorated)
            decorated.__click_params__[-1].group = title  # type: ignore[attr-defined]  # click keeps them there
        return decorated

    return decorate
