"""What differs between two runs besides their times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlprof.session.info import Git, Info


def changes(a: Info, b: Info) -> tuple[str, ...]:
    """One line per difference: command, settings, packages, environment, git, machine."""
    return tuple(_changes(a, b))


def _changes(a: Info, b: Info) -> Iterator[str]:
    if a.command[1:] != b.command[1:]:
        yield f"command: {' '.join(a.command[1:])} -> {' '.join(b.command[1:])}"
    yield from _mapping("setting", a.settings, b.settings)
    yield from _mapping("package", a.packages, b.packages)
    yield from _mapping("variable", a.environment, b.environment)
    if _revision(a.git) != _revision(b.git):
        yield f"git: {_revision(a.git)} -> {_revision(b.git)}"
    for name in ("python", "host", "processor", "cores", "folder", "core"):
        one, other = getattr(a, name), getattr(b, name)
        if one != other:
            yield f"{name}: {one} -> {other}"


def _revision(git: Git | None) -> str:
    return "no repository" if git is None else git.revision[:12] + (" with changes" if git.changed else "")


def _mapping(what: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*a, *b}):
        one, other = a.get(key, "not set"), b.get(key, "not set")
        if one != other:
            yield f"{what} {key}: {one} -> {other}"
