"""Which operations are shown in which order, and what the cursor selects."""

from __future__ import annotations

import pytest
from frames import frame, many_parts, parts, past

from rlprof.top.look import Look
from rlprof.top.screen import Size, screen
from rlprof.top.view import View, moved, operation_of, rows_of

SIZE = Size(100, 30)


def names(view, **known):
    return [row.operation for row in rows_of(frame(**known), view)]


def test_the_tree_has_the_order_of_the_frame():
    assert names(View()) == [part.operation for part in frame().parts]
    assert [row.depth for row in rows_of(frame(), View())] == [part.depth for part in frame().parts]


def test_a_list_is_sorted_by_own_time():
    now = rows_of(frame(), View(order="now"))
    assert [row.operation for row in now[:3]] == ["env_step", "backward", "policy_forward"]
    whole = rows_of(frame(), View(order="whole"))
    assert [row.operation for row in whole[:3]] == ["env_step", "policy_forward", "backward"]
    assert names(View(order="name")) == sorted(part.operation for part in frame().parts)
    assert sum(row.whole for row in whole) == pytest.approx(sum(part.own_share for part in frame().parts))


def test_an_operation_at_several_places_is_one_row_of_a_list():
    tree = (
        ("rollout", "other", 0, True, 60.0, 0.0, 60.0, 0.0, 1, 1e6),
        ("env_step", "environment", 1, False, 60.0, 60.0, 50.0, 50.0, 30, 1e6),
        ("evaluation", "other", 0, True, 40.0, 0.0, 40.0, 0.0, 1, 1e6),
        ("env_step", "environment", 1, False, 40.0, 40.0, 50.0, 50.0, 10, 5e6),
    )
    (row,) = rows_of(frame(parts=parts(tree)), View(filter="ENV_"))
    assert (row.now, row.whole, row.call_ns) == (100.0, 100.0, pytest.approx(2e6))
    assert row.ns == pytest.approx(131e9)


def test_the_filter_finds_operations_that_the_tree_leaves_out():
    assert names(View(filter="grad")) == ["zero_grad"]
    assert names(View(filter="nothing")) == []


def test_a_past_iteration_shows_its_own_times_beside_the_run():
    rows = rows_of(frame(), View(past=past(2)))
    assert [row.operation for row in rows[:3]] == ["env_step", "backward", "policy_forward"]
    assert rows[0].now == pytest.approx(100 * 800 / 1500)
    assert rows[0].whole == pytest.approx(43.2)
    assert rows[0].call_ns == pytest.approx(800e6 / 512)
    assert sum(row.now for row in rows) == pytest.approx(100)


def down(shown, view, times, by=1):
    for _ in range(times):
        visible = screen(shown, view, SIZE, Look()).keys
        selected, everything = moved(shown, view, by, visible)
        view = View(order=view.order, selected=selected, everything=everything)
    return view


def test_the_cursor_goes_through_all_operations_and_back_to_none():
    shown = frame(parts=many_parts(100))
    view = down(shown, View(), 1)
    assert view.selected == rows_of(shown, View())[0].key
    view = down(shown, view, 150)
    assert view.selected == rows_of(shown, View())[-1].key
    assert view.selected in screen(shown, view, SIZE, Look()).keys
    view = down(shown, view, 100, by=-1)
    assert view.selected is None


def test_the_selected_row_is_always_visible():
    shown = frame(parts=many_parts(500))
    view = View(order="name")
    for _ in range(60):
        view = down(shown, view, 1)
        assert view.selected in screen(shown, view, SIZE, Look()).keys


def test_the_cursor_does_not_move_where_there_is_nothing():
    assert moved(frame(parts=()), View(), 1, ()) == (None, False)


def test_only_operations_can_be_opened():
    assert operation_of(View(selected=("rollout", "env_step"))) == "env_step"
    assert operation_of(View(selected=("unattributed",))) is None
    assert operation_of(View()) is None
