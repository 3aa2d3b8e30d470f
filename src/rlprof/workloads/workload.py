"""Description of a reference training, for the command line. It imports none of the training's libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from rlprof import profile
from rlprof.errors import MissingLibraryError
from rlprof.workloads.progress import Progress
from rlprof.workloads.settings import Settings

Components = Mapping[str, Any]
"""By title, the operations below it as words of a string, or nested components."""

Parts = Mapping[str, Callable[[], int]]
"""The parts of a training. Each does a piece of its work when called, and returns for how many environment steps the
training would do that much of it."""


class Program(Protocol):
    """The module of a workload that holds the training."""

    def train(self, settings: Any, progress: Progress) -> None:
        """Train for as long as `settings` says. `progress` gets the score of each iteration."""

    def parts(self, settings: Any) -> Parts:
        """The parts that `--expect` measures separately."""


@dataclass(frozen=True)
class Workload:
    name: str
    settings: type[Settings]
    components: Components = field(default_factory=dict)
    """The breakdown of its time, in the terms of its field."""
    cure: str = ""
    """The setting (`turbo`) that removes its bottleneck."""
    score: str = "mean return"
    """Name of the score that `progress` gets for each iteration."""
    prepare: Callable[[Any], bool] = lambda _: False
    """Called with the settings before recording. If it returns True, nothing is trained."""

    def load(self) -> Program:
        """Import the training with its libraries. Raises MissingLibraryError if one is not installed."""
        try:
            program: Any = import_module(f"rlprof.workloads.{self.name}.training")
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "rlprof":
                raise
            raise MissingLibraryError(f"rlprof train {self.name}", error.name.partition(".")[0], "workloads") from error
        return program  # type: ignore[no-any-return]  # a module with the functions of one


def part(do: Callable[[], object], steps: float) -> Callable[[], int]:
    """A part that does the same amount of work in every call, as much as the training does for so many steps."""

    def measured() -> int:
        do()
        return round(steps)

    return measured


def declare(**names: str) -> None:
    """Give operations that only one training has a category: `declare(environment="net_step net_reset")`."""
    for category, operations in names.items():
        for operation in operations.split():
            profile(operation, category=category)
