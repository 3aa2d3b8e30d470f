"""The verdict on a run as data. The report fills it in, and the end-of-run summary prints it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whole sentences: how fast the training is, what takes most of its time, and what to try first."""

    sentences: tuple[str, ...] = ()
    pending: bool = False
    """The report is still being written by another process, so that there are no sentences yet."""
