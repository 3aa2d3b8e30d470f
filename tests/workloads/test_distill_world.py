"""distill's grid world in hand-made cases, and its teacher against the batched one."""

from __future__ import annotations

import numpy as np
import pytest

from rlprof.workloads.distill import tokens
from rlprof.workloads.distill.batched import choose_all
from rlprof.workloads.distill.teacher import choose
from rlprof.workloads.distill.tokens import EAST, EMPTY, NORTH, RADIUS, SOUTH, STAY, TOKENS, WALL, WEST
from rlprof.workloads.distill.world import DELIVERED, MISSIONS, TAKEN, Worlds


def world_of(drawn: str) -> Worlds:
    """One world from a drawing: `#` wall, `E` extractor, `e` extractor that rests for 3 steps, `H` hub, agents by
    number, or by upper case letter (`A` for 0) if they have an ore."""
    first = RADIUS + 1
    drawing = {
        (row, column): letter
        for row, line in enumerate(drawn.split(), first)
        for column, letter in enumerate(line, first)
    }
    agents = {"0A1B".index(letter) // 2: at for at, letter in drawing.items() if letter in "0A1B"}
    world = Worlds("extractor_hub_14", envs=1, agents=len(agents), seed=(1, 0))
    world.cells[:], world.values[:], world.load[:] = EMPTY, 0, 0
    objects = {"#": WALL, "E": tokens.EXTRACTOR, "e": tokens.EXTRACTOR, "H": tokens.HUB, ".": EMPTY}
    for at, letter in drawing.items():
        world.cells[(0, *at)] = objects.get(letter, tokens.AGENT)
        world.values[(0, *at)] = {"e": 3, "A": 1, "B": 1}.get(letter, 0)
    world.home = np.array(next((at for at, letter in drawing.items() if letter == "H"), (first, first)))
    extractors = [at for at, letter in drawing.items() if letter in "Ee"]
    world._extractors = np.array([extractors], np.int64).reshape(1, -1, 2)
    for agent, at in agents.items():
        world.positions[0, agent] = at
        world.load[0, agent] = world.values[(0, *at)]
    return world


def step(world: Worlds, *actions: int) -> list[float]:
    return world.step(np.array([actions]))[0].tolist()


# ---- the world ----


def test_an_agent_takes_an_ore_from_an_extractor_and_delivers_it_to_the_hub():
    world = world_of("E0H")
    assert step(world, EAST) == [0]  # nothing to deliver
    assert step(world, WEST) == pytest.approx([TAKEN])
    assert world.load.tolist() == [[1]]
    assert step(world, WEST) == [0]  # it has an ore, and the extractor rests
    assert step(world, EAST) == [DELIVERED]
    assert world.load.tolist() == [[0]]


def test_an_extractor_rests_after_each_ore():
    world = world_of("e0H")
    assert [step(world, WEST)[0] for _ in range(3)] == pytest.approx([0, 0, TAKEN])
    step(world, EAST)
    waits = [step(world, WEST)[0] > 0 for _ in range(MISSIONS["extractor_hub_14"].rest)]
    assert waits.index(True) == MISSIONS["extractor_hub_14"].rest - 2  # one step passed at the hub


@pytest.mark.parametrize("drawn", ["#01", ".01"])
def test_agents_move_neither_into_walls_nor_into_each_other(drawn):
    world = world_of(drawn)
    first, second = world.positions[0].tolist()
    step(world, WEST, WEST)
    moved = drawn[0] == "."
    assert world.positions[0].tolist() == [[first[0], first[1] - moved], [second[0], second[1] - moved]]


def test_the_first_of_two_agents_that_want_a_cell_gets_it():
    world = world_of("0.1")
    middle = (world.positions[0, 0] + (0, 1)).tolist()
    still = world.positions[0, 1].tolist()
    step(world, EAST, WEST)
    assert world.positions[0].tolist() == [middle, still]
    assert (world.cells == tokens.AGENT).sum() == 2


def test_staying_changes_nothing():
    world = world_of("E0H")
    cells = world.cells.copy()
    assert step(world, STAY) == [0]
    assert (world.cells == cells).all()


def test_an_observation_is_the_own_state_and_then_what_is_seen_the_nearest_first():
    world = world_of("..e..\n.....\n..A1.\n.....\nH...#")
    seen = world.observe()
    assert seen.shape == (1, 2, TOKENS, 3)
    assert seen.dtype == np.uint8
    at = {
        name: (RADIUS + row) << 4 | RADIUS + column
        for name, row, column in (("1", 0, 1), ("e", -2, 0), ("H", 2, -2), ("#", 2, 2))
    }
    assert seen[0, 0, :8].tolist() == [
        [tokens.HERE, tokens.LOAD, 1], [tokens.HERE, tokens.HOME_ROW, 2], [tokens.HERE, tokens.HOME_COLUMN, 0],
        [at["1"], tokens.AGENT, 0], [at["e"], tokens.EXTRACTOR, 3], [at["H"], tokens.HUB, 0], [at["#"], WALL, 0],
        [tokens.NOTHING] * 3,
    ]  # fmt: skip
    assert (seen[0, 0, 8:] == tokens.NOTHING).all()
    assert [tokens.HERE - 1, tokens.AGENT, 1] in seen[0, 1].tolist()  # the other one sees its load


@pytest.mark.parametrize("mission", MISSIONS)
def test_a_mission_has_its_size_its_extractors_and_a_hub_that_walls_do_not_shut_off(mission):
    rules = MISSIONS[mission]
    worlds = Worlds(mission, envs=6, agents=4, seed=(3, 0))
    for cells in worlds.cells:
        inside = cells[RADIUS : RADIUS + rules.size, RADIUS : RADIUS + rules.size]
        assert (cells != EMPTY).sum() == (inside != EMPTY).sum()
        assert all((edge == WALL).all() for edge in (inside[0], inside[-1], inside[:, 0], inside[:, -1]))
        assert [(cells == what).sum() for what in (tokens.EXTRACTOR, tokens.HUB, tokens.AGENT)] == [
            rules.extractors,
            1,
            4,
        ]
        row, column = worlds.home
        assert WALL not in (cells[row - 1, column], cells[row + 1, column], cells[row, column - 1])
    assert (worlds.cells[0] != worlds.cells[1]).any()


def test_a_world_that_is_reset_is_another_and_the_others_stay():
    worlds = Worlds("extractor_hub_30", envs=2, agents=4, seed=(1, 0))
    before = worlds.cells.copy()
    worlds.reset(np.array([1]))
    assert (worlds.cells[0] == before[0]).all()
    assert (worlds.cells[1] != before[1]).any()


# ---- the teacher ----


@pytest.mark.parametrize(
    ("drawn", "action"),
    [
        ("E.0.H", WEST),
        ("E.A.H", EAST),
        (".E.\n.#.\n.0.", WEST),  # around the wall; west, because both paths are equally long
        ("E..0e", EAST),  # it waits at the near one for as long as it would walk to the other
        (".E..0...E", WEST),
        (".E...0....E\n..1", EAST),  # the other is nearer to the first
        (".E...0....E\n..B", WEST),  # it has an ore, and does not want another
        ("###\n#E#\n###\n.0.\n...\n...\n.H.", SOUTH),  # no path to what it sees, so it goes to the hub
        ("E0#", WEST),
    ],
)
def test_the_teacher_takes_the_shortest_path_to_the_first_ready_goal(drawn, action):
    seen = world_of(drawn).observe()[0, 0]
    assert choose(seen) == action
    assert choose_all(seen[None]).tolist() == [action]


def test_an_agent_that_sees_no_goal_goes_to_the_hub():
    world = world_of("0.....\n......\n......\n......\n......\n......\n......H")
    assert choose(world.observe()[0, 0]) == SOUTH
    world = world_of("H......\n......\n......\n......\n......\n#.....#\n......0")
    assert choose(world.observe()[0, 0]) == WEST  # north is a wall


@pytest.mark.parametrize("mission", MISSIONS)
def test_the_batched_teacher_chooses_the_actions_of_the_teacher(mission):
    chance = np.random.default_rng(5)
    worlds = Worlds(mission, envs=6, agents=6, seed=(2, 0))
    inside = slice(RADIUS + 1, RADIUS + worlds.mission.size - 1)
    more = chance.random(worlds.cells.shape) < np.linspace(0, 0.4, 6)[:, None, None]  # up to mazes without a path
    more[:, : inside.start] = more[:, :, : inside.start] = False
    worlds.cells[more & (worlds.cells == EMPTY)] = WALL
    seen = set()
    for _ in range(25):
        observations = worlds.observe().reshape(-1, TOKENS, 3)
        actions = choose_all(observations)
        assert actions.tolist() == [choose(observation) for observation in observations]
        seen |= set(actions.tolist())
        chosen = np.where(chance.random(36) < 0.3, chance.integers(0, 5, 36), actions)
        worlds.step(chosen.reshape(6, 6))
    assert seen >= {NORTH, SOUTH, WEST, EAST}


def test_the_teacher_solves_what_random_actions_do_not():
    chance = np.random.default_rng(1)
    taught, lucky = (Worlds("extractor_hub_30", envs=8, agents=4, seed=(1, 0)) for _ in range(2))
    rewards = np.zeros(2)
    for _ in range(64):
        actions = choose_all(taught.observe().reshape(-1, TOKENS, 3)).reshape(8, 4)
        rewards += taught.step(actions).sum(), lucky.step(chance.integers(0, 5, (8, 4))).sum()
    assert rewards[0] > 10 * rewards[1] > 0
