"""The fixture `rlprof_compare`: a test that fails when a training has become slower, with a known error rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from rlprof.analysis.comparison import Comparison


class Compare(Protocol):
    """Compare two command lines of rlprof; options are those of `rlprof.experiment.comparing.Plan`."""

    def __call__(self, a: str, b: str, **options: Any) -> Comparison: ...


@pytest.fixture
def rlprof_compare() -> Compare:
    """`rlprof_compare("run train.py", "run train.py --fast", pairs=10).verdict` is faster, slower, same or unknown."""

    def compare(a: str, b: str, **options: Any) -> Comparison:
        from rlprof.analysis.components import component_of  # noqa: PLC0415 - pytest loads this file in every project
        from rlprof.experiment.comparing import Plan, compare_live  # noqa: PLC0415

        return compare_live(Plan(a, b, **options), component_of({}))

    return compare
