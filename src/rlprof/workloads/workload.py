"""What the command line needs to know of a reference training before it imports its libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from rlprof.errors import MissingLibraryError
from rlprof.workloads.progress import Progress
from rlprof.workloads.settings import Settings

Components = Mapping[str, Any]
"""Titles, and the operations (words of a string) that are under each, or components again."""

Parts = Mapping[str, Callable[[], int]]
"""What a training consists of, each alone: does a piece of the work, and returns for how many environment steps the
training would do as much of it."""


class Program(Protocol):
    """The module of a workload that trains."""

    def train(self, settings: Any, progress: Progress) -> None:
        """Until `settings` are fulfilled; `progress` hears of each iteration and of its score."""

    def parts(self, settings: Any) -> Parts:
        """For `--expect`."""


@dataclass(frozen=True)
class Workload:
    name: str
    settings: type[Settings]
    program: str
    """The module that trains; imports torch and all that."""
    score: str
    """What `progress` is told of each iteration: "mean return"."""
    components: Components = field(default_factory=dict)
    """Its breakdown in the words of its field."""
    cure: str = ""
    """The setting (`turbo`) that removes its bottleneck."""
    before: str = ""
    """`module:function` that is called with the settings before anything is recorded. True: that was all."""

    def prepare(self, settings: Settings) -> bool:
        """Whether nothing is to be trained."""
        if not self.before:
            return False
        module, _, name = self.before.partition(":")
        return bool(getattr(import_module(module), name)(settings))

    def load(self) -> Program:
        """Import what it is made of."""
        try:
            program: Any = import_module(self.program)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "rlprof":
                raise
            raise MissingLibraryError(f"rlprof train {self.name}", error.name.partition(".")[0], "workloads") from error
        return program  # type: ignore[no-any-return]  # a module with the functions of one
