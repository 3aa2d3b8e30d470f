"""What the benchmark of answers reads from the JSON of `rlprof report`, in one place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _answer_truths import Lines


@dataclass(frozen=True, slots=True)
class Answer:
    """One finding of a report."""

    rule: str
    file: str | None
    """Name of the file without folders."""
    line: int | None
    gain: tuple[float, float] | None
    """Lower and upper end of the promised speed, as a multiple of the present speed."""

    def is_within(self, lines: Lines) -> bool:
        return self.line in lines.get(self.file or "", ())


def answers(report: dict[str, Any]) -> list[Answer]:
    """The findings, first the one that is to be tried first. Notes about the machine are not among them."""
    found = []
    for finding in report["findings"]["findings"]:
        place, gain = finding["place"], finding["gain"]
        found.append(
            Answer(
                finding["rule"],
                Path(place["file"]).name if place else None,
                place["line"] if place else None,
                (gain["low"], gain["high"]) if gain else None,
            )
        )
    return found


def steps_per_second(report: dict[str, Any]) -> float:
    return float(report["facts"]["progress"]["steps_per_second"] or 0.0)


def training_ns(report: dict[str, Any]) -> float:
    """Time of the training without start-up, which is what all shares are of."""
    return float(report["facts"]["breakdown"]["training_ns"])


def share_of_operations(report: dict[str, Any], operations: Iterable[str]) -> float:
    """Percent of the training time in these operations, with what they call."""
    wanted = set(operations)
    total, inside = 0.0, None
    for row in report["facts"]["breakdown"]["rows"]:
        if inside is not None and row["depth"] > inside:
            continue
        inside = row["depth"] if row["operation"] in wanted else None
        if inside is not None:
            total += row["subtree_ledger_ns"]
    return 100 * total / training_ns(report)


def share_of_lines(report: dict[str, Any], lines: Lines) -> float:
    """Percent of the training time in these lines and in what they call in libraries."""
    code = report["facts"]["code"]
    every = (line for found in code["lines"].values() for line in found)
    total = sum(float(line["ns"]) for line in every if line["line"] in lines.get(Path(line["file"]).name, ()))
    return 100 * total / training_ns(report)
