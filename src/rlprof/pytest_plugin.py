"""The fixture `rlprof_compare`: a test that fails when a training has become slower, with a known error rate.

For a conftest.py: `pytest_plugins = ["rlprof.pytest_plugin"]`. As an entry point it would be there without that, but
pytest would then rewrite every assert of rlprof, in every project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from rlprof.analysis.comparison import Comparison


class Compare(Protocol):
    """Compare two command lines of rlprof; options are those of `rlprof.compare.paired.Plan`."""

    def __call__(self, a: str, b: str, **options: Any) -> Comparison: ...


@pytest.fixture
def rlprof_compare() -> Compare:
    """`rlprof_compare("run train.py", "run train.py --fast", pairs=10).verdict` is faster, slower, same, unknown or
    different work."""

    def compare(a: str, b: str, **options: Any) -> Comparison:
        from rlprof.analysis.components import component_of  # noqa: PLC0415 - only a test that compares needs it
        from rlprof.compare.paired import Plan, compare_live  # noqa: PLC0415

        return compare_live(Plan(a, b, **options), component_of({}))

    return compare
