"""The layouts of records: rows.py, the C core and the twin agree."""

from __future__ import annotations

import pytest

from rlprof import Profiler
from rlprof.ledger import rows
from rlprof.ledger.rows import LaneRow, NodeRow, OperationRow

try:
    from rlprof.ledger import _core
except ImportError:
    _core = None

needs_core = pytest.mark.skipif(_core is None, reason="the C core is not built here")


def test_rows_have_the_named_types(fake):
    with fake.profile("env_step", category="environment"):
        fake.tick(5)
    raw = fake.raw()
    assert {type(row) for row in raw["nodes"]} == {NodeRow}
    assert {type(row) for row in raw["lanes"]} == {LaneRow}
    assert {type(row) for row in raw["operations"]} == {OperationRow}
    (operation,) = raw["operations"]
    (step,) = (row for row in raw["nodes"] if row.operation == operation.id)
    (lane,) = raw["lanes"]
    assert (operation.name, operation.category) == ("env_step", "environment")
    assert (step.calls, step.busy, step.self, step.ledger, step.min, step.max) == (1, 5, 5, 5, 5, 5)
    assert (step.lane, lane.kind, lane.on_driver, lane.alive, lane.uses) == (lane.id, "thread", True, True, 1)


def test_a_lane_says_what_it_does_now_and_since_when(fake):
    """A lane has its innermost node, the start of that span, and whether that waits."""

    def now():
        raw = fake.raw()
        names = {row.id: row.name for row in raw["operations"]}
        nodes = {row.id: names.get(row.operation) for row in raw["nodes"]}
        (lane,) = raw["lanes"]
        return nodes[lane.node], lane.since, lane.waits

    begun = fake.raw()["now"]
    with fake.profile("rollout"):
        fake.tick(5)
        with fake.profile("queue_wait", wait=True):
            fake.tick(7)
            assert now() == ("queue_wait", begun + 5, True)
        fake.tick(1)
        assert now() == ("rollout", begun, False)
    fake.tick(3)
    assert now() == (None, begun + 13, False)


@needs_core
@pytest.mark.parametrize("record", ["node", "lane", "operation", "mark", "gain", "event", "slowdown"])
def test_a_core_with_another_layout_is_refused(record):
    rows.check(_core.LAYOUT)
    first, *rest = _core.LAYOUT[record]
    for other in ((*rest, first), tuple(rest), (("other", *first[1:]), *rest)):
        with pytest.raises(ImportError, match=f"layout of {record}"):
            rows.check({**_core.LAYOUT, record: other})


@needs_core
@pytest.mark.parametrize("record", ["mark", "gain", "event", "slowdown"])
def test_a_field_of_another_type_or_place_is_refused(record):
    name, code, offset = _core.LAYOUT[record][-1]
    for other in ((name, "I" if code != "I" else "q", offset), (name, code, offset + 4)):
        with pytest.raises(ImportError, match="install rlprof again"):
            rows.check({**_core.LAYOUT, record: (*_core.LAYOUT[record][:-1], other)})


@needs_core
def test_the_cores_rows_cost_the_garbage_collector_nothing():
    import gc

    ledger = Profiler("c").ledger
    ledger.start()
    with ledger.recorder("env_step"):
        pass
    assert not any(map(gc.is_tracked, ledger.raw()["nodes"]))
