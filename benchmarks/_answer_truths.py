"""What is wrong in each training of `answers/`: accepted rules, where the time is, which lines of code to change."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "answers"
Lines = dict[str, set[int]]


@dataclass(frozen=True, slots=True)
class Text:
    """A line of code, or all lines from it to another one, found by their text. Each text is there exactly once."""

    first: str
    last: str | None = None

    def lines(self, path: Path) -> set[int]:
        source = [line.strip() for line in path.read_text().splitlines()]
        places = [source.index(text) + 1 for text in (self.first, self.last or self.first) if source.count(text) == 1]
        if len(places) != 2 or places[0] > places[1]:
            raise ValueError(f"{path.name} must have {self.first!r} and {self.last!r} once, in this order")
        return set(range(places[0], places[1] + 1))


@dataclass(frozen=True, slots=True)
class Function:
    """All lines of a function. Its name is there exactly once."""

    name: str
    file: str | None = None

    def lines(self, path: Path) -> set[int]:
        tree = ast.walk(ast.parse(path.read_text()))
        found = [node for node in tree if isinstance(node, ast.FunctionDef) and node.name == self.name]
        if len(found) != 1:
            raise ValueError(f"{path.name} must have one function {self.name}")
        return set(range(found[0].lineno, (found[0].end_lineno or found[0].lineno) + 1))


@dataclass(frozen=True, slots=True)
class Truth:
    rules: tuple[str, ...] = ()
    """Rules that are right about it. Empty for a healthy training."""
    operations: tuple[str, ...] = ()
    """Operations that hold the planted time, with what they call. If empty, the lines hold it."""
    places: tuple[Text | Function | str, ...] = ()
    """Lines that are right as the place of a finding; a string is the text of one line. Empty if the cause is a
    setting rather than a line."""
    one_core: bool = True
    """False if the training waits, writes files, or starts processes or threads: then it cannot be stopped for a moment
    without losing what goes on meanwhile."""
    pairs: bool = True
    """If not on one core, measure the fix with `rlprof compare`. False if it changes the work of an iteration: then
    whole runs are compared."""
    costs_time: bool = True
    """False for a leak, which costs memory."""

    @property
    def healthy(self) -> bool:
        return not self.rules

    def lines(self, training: str) -> Lines:
        """The accepted lines by file name."""
        found: Lines = {}
        for place in self.places:
            one = Text(place) if isinstance(place, str) else place
            file = (one.file if isinstance(one, Function) else None) or f"{training}.py"
            found.setdefault(file, set()).update(one.lines(FOLDER / file))
        return found


def files() -> dict[str, Path]:
    """The scripts in the folder that are trainings: those with a `main` function."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.py")) if "def main() -> None:" in path.read_text()}
