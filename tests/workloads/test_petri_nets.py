"""The net of objects against its rules, and the net of numbers against the net of objects."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest

from rlprof.workloads.petri import rules
from rlprof.workloads.petri.net import Net, Nets
from rlprof.workloads.petri.turbo import TurboNets

U1, T1, U2, T2 = (rules.TRANSITIONS.index(name) for name in ("u1", "t1", "u2", "t2"))


def enabled(net):
    return [name for name, may in zip((*rules.TRANSITIONS, "WAIT"), net.mask()) if may]


def wafer(net, number):
    return net.observation()[rules.FEATURES * (number - 1) :][: rules.FEATURES]


def test_the_net_has_the_documents_size():
    assert len(rules.PLACES) == 15
    assert len(rules.TRANSITIONS) == 12
    assert rules.ACTIONS == 13
    assert len(Net().observation()) == 35


def test_at_first_only_the_first_hop_can_begin():
    net = Net()
    assert enabled(net) == ["u1", "WAIT"]
    assert wafer(net, 7) == [7, 0, rules.AT_A_PORT, 0, -1]


def test_a_hop_takes_the_robot_and_gives_it_back():
    net = Net()
    assert net.step(U1) == (-5, False)
    assert enabled(net) == ["t1", "WAIT"]
    assert wafer(net, 1) == [1, rules.PLACES.index("d1"), rules.ON_AN_ARM, 0, -1]
    net.step(T1)
    assert enabled(net) == ["u1", "WAIT"]
    assert wafer(net, 1) == [1, rules.PLACES.index("s1"), rules.MUST_LEAVE, 0, 85]
    assert wafer(net, 2) == [2, 0, rules.AT_A_PORT, 10, -1]


def test_a_wafer_leaves_when_it_is_processed_and_is_scrap_when_it_does_not():
    net = Net()
    net.step(U1)
    net.step(T1)
    for _ in range(14):  # 70 seconds, each worth 2 minus the 1 for time
        assert "u2" not in enabled(net)
        assert net.step(rules.WAIT) == (5, False)
    assert "u2" in enabled(net)
    for _ in range(3):
        assert net.step(rules.WAIT) == (-5 + 5 * rules.OVERTIME_REWARD, False)
    assert wafer(net, 1)[4] == 0
    assert net.step(rules.WAIT) == (-5 + 5 * rules.OVERTIME_REWARD + rules.SCRAP_REWARD, True)


def test_capacity_stops_what_would_overfill_a_place():
    net = Net()
    for _ in range(2):
        net.step(U1)
        net.step(T1)
    net.step(U1)
    assert enabled(net) == ["WAIT"]  # s1 holds two, and the robot holds the third


def test_a_transition_that_is_not_enabled_is_refused():
    for nets in (Nets(1), TurboNets(1)):
        with pytest.raises(ValueError, match="u2 is not enabled"):
            nets.step(np.array([U2]))


def scheduled(seen, mask):
    """A simple schedule: move the wafer that is furthest along the route, one wafer at a time."""
    route = [index for pair in zip(range(6), range(6, 12)) for index in pair]
    busy = any(place not in (0, 6) for place in seen[1 :: rules.FEATURES])
    return next((action for action in reversed(route) if mask[action] and (action != U1 or not busy)), rules.WAIT)


def test_a_lot_is_finished():
    net, total, ended = Net(), 0, False
    while not ended:
        reward, ended = net.step(scheduled(net.observation(), net.mask()))
        total += reward
    assert net.observation()[1 :: rules.FEATURES] == [6] * rules.WAFERS
    processing = 2 * rules.WAFERS * sum(rules.PROCESSING_SECONDS)
    # One at a time, each wafer is taken out on time: twelve firings of 5 s, and its processing.
    time = rules.WAFERS * (12 * 5 + sum(rules.PROCESSING_SECONDS))
    assert total == processing - time + 10 * rules.WAFERS + 800


def random_actions(rng, masks, tick):
    """Half of the nets take random actions and soon get stuck. The others begin wafers more rarely than they move them
    on, and get far."""
    wish = rng.random(masks.shape) * masks
    wish[:, rules.WAIT] *= (1.0, 0.3, 0.6)[tick % 3]
    wish[::2, U1] *= 0.05
    wish[::2, rules.WAIT] *= 0.5
    return wish.argmax(1)


@pytest.mark.long
def test_the_turbo_net_is_the_same_net_for_100_000_random_steps():
    rng = np.random.default_rng(1)
    count = 64
    nets, turbo = Nets(count), TurboNets(count)
    places, ends = set(), 0
    for tick in range(100_000 // count + 1):
        seen, masks = nets.observations(), nets.masks()
        np.testing.assert_array_equal(turbo.observations(), seen)
        np.testing.assert_array_equal(turbo.masks(), masks)
        assert turbo.observations().dtype == seen.dtype == np.int64
        places |= set(seen[:, 1 :: rules.FEATURES].ravel().tolist())
        actions = random_actions(rng, masks, tick)
        rewards, ended = nets.step(actions)
        for found, expected in zip(turbo.step(actions), (rewards, ended)):
            np.testing.assert_array_equal(found, expected)
        ends += ended.sum()
        for some in (nets, turbo):
            some.reset(ended)
    assert len(places) == len(rules.STATIONS) + len(rules.ARMS)
    assert ends > 100


def test_finished_lots_are_the_same_too():
    """Random actions never finish a lot, but a schedule does, on both nets."""
    nets, turbo = Nets(2), TurboNets(2)
    for tick in range(1500):
        quick, slow = map(scheduled, nets.observations(), nets.masks())
        actions = np.array([quick, slow if tick % 2 else rules.WAIT])
        expected = nets.step(actions)
        for found, wanted in zip(turbo.step(actions), expected):
            np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(turbo.observations(), nets.observations())
        if expected[1][0]:
            break
    assert expected[0][0] > rules.FINISH_REWARD


@pytest.mark.figures
def test_turbo_is_three_times_as_fast():
    rng = np.random.default_rng(1)
    count, ratios = 16, []
    nets = (Nets(count), TurboNets(count))
    for tick in range(400):
        actions = random_actions(rng, nets[0].masks(), tick)
        taken = []
        for some in nets:
            began = perf_counter()
            _, ended = some.step(actions)
            some.observations()
            some.masks()
            taken.append(perf_counter() - began)
            some.reset(ended)
        ratios.append(taken[0] / taken[1])
    assert np.median(ratios) >= 3
