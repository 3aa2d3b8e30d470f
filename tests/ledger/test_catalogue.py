"""Categories of operations: the catalogue's, and those that a program declares."""

from __future__ import annotations

import inspect

import pytest

from rlprof import Profiler, profile
from rlprof.ledger.catalogue import CATEGORIES, names_of
from rlprof.ledger.interface import Recorder
from rlprof.workloads import WORKLOADS, find_workload

NAMES = {name for category in CATEGORIES for name in names_of(category)}


def test_a_category_that_is_given_once_counts_for_later_spans(fake):
    fake.profile("net_step", category="environment")
    with fake.profile("net_step"):
        fake.tick(1)
    assert fake.snapshot().account("net_step").category == "environment"


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_workload_declares_its_own_operations(workload):
    declared = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rlprof.workloads.workload.profile", lambda name, category: declared.append((name, category)))
        patch.delitem(__import__("sys").modules, f"rlprof.workloads.{workload}", raising=False)
        find_workload(workload)
    assert declared
    assert {category for _, category in declared} <= set(CATEGORIES)
    assert not {name for name, _ in declared} & NAMES, "the catalogue has names that every training may use"


def test_profile_has_the_signature_that_its_type_declares(core):
    declared = list(inspect.signature(Recorder.__call__).parameters.values())[1:]
    actual = inspect.signature(Profiler(core).profile).parameters.values()
    assert [(one.name, one.default) for one in actual] == [(one.name, one.default) for one in declared]
    assert inspect.getdoc(profile)
