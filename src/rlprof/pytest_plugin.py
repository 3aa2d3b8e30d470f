"""The fixture `rlprof_compare`: a test that fails if a training has become slower, with a known error rate.

Load it in a conftest.py: `pytest_plugins = ["rlprof.pytest_plugin"]`. It is not an entry point, because pytest would
then rewrite every assert of rlprof in every project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from rlprof.analysis.comparison import Comparison


class Compare(Protocol):
    """Compares two command lines of rlprof, or two sessions, as `rlprof compare` does.

    `fail_if_slower` is a fraction: with 0.05 the test fails if B is certainly slower than A by more than 5 %. The other
    options are those of `rlprof.compare.paired.Plan`.
    """

    def __call__(self, a: str, b: str, fail_if_slower: float | None = None, **options: Any) -> Comparison: ...


@pytest.fixture
def rlprof_compare() -> Compare:
    """`rlprof_compare("run train.py", "run train.py --fast", pairs=10).verdict` is faster, slower, same, unknown or
    different work."""

    def compare(a: str, b: str, fail_if_slower: float | None = None, **options: Any) -> Comparison:
        from rlprof.compare.arms import compare_arms  # noqa: PLC0415 - only a test that compares needs it
        from rlprof.compare.gate import gate  # noqa: PLC0415
        from rlprof.compare.paired import Plan  # noqa: PLC0415

        found = compare_arms(Plan(a, b, **options))
        if fail_if_slower is not None and not (decision := gate(found, fail_if_slower)).passed:
            pytest.fail(decision.note)
        return found

    return compare
