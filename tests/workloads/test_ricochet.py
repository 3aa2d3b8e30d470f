"""ricochet: its rules and pictures against boards made by hand, its memory, and the training."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from workload_runs import rlprof, scores_of, settings_of, train_twice

from rlprof.workloads.ricochet import COMPONENTS
from rlprof.workloads.ricochet.board import DOWN, LEFT, RIGHT, UP, Board, Level, make_levels
from rlprof.workloads.ricochet.drawing import FLOOR, INLAY, LINE, ROBOTS, WALL, Drawing
from rlprof.workloads.ricochet.environment import MOVE, SOLVED, Ricochet, planes
from rlprof.workloads.ricochet.network import ConvLstmLayer
from rlprof.workloads.ricochet.settings import BoardSettings, ImageSettings, RicochetSettings
from rlprof.workloads.ricochet.training import make_model, parts

TINY = ("envs=4", "n_steps=4", "iterations=2", "batch_size=8", "n_epochs=1", "image.size=24", "network.channels=4")

DOCUMENTED = {
    "rendering": """
        env_rgb_observation_generation env_rgb_rendering env_rgb_resizing env_rgb_draw_grid env_rgb_draw_walls
        env_rgb_draw_robots env_rgb_draw_target
    """,
    "policy": """
        convlstm_forward_pass convlstm_boundary_padding convlstm_conv_encoder convlstm_skip_connection convlstm_layers
        convlstm_global_pooling convlstm_projection recurrent_policy_forward recurrent_policy_get_hidden_states
        recurrent_policy_action_value recurrent_policy_action_dist recurrent_policy_action_sampling
    """,
}
"""The operations that the document lists, besides training_total and those of its self-test."""


def tiny(*words: str) -> RicochetSettings:
    return settings_of("ricochet", *TINY, *words)


# ---- rules ----


@pytest.mark.parametrize(
    ("direction", "stop"), [(UP, 2), (RIGHT, 11), (DOWN, 14), (LEFT, 8)], ids=["up", "right", "down", "left"]
)
def test_on_an_empty_board_a_robot_slides_to_the_edge(direction, stop):
    assert Board(4).slide(10, direction, ()) == stop


@pytest.mark.parametrize(
    ("wall", "start", "direction", "stop"),
    [
        ((5, RIGHT), 4, RIGHT, 5),
        ((5, RIGHT), 7, LEFT, 6),
        ((5, DOWN), 1, DOWN, 5),
        ((5, DOWN), 13, UP, 9),
        ((5, DOWN), 4, RIGHT, 7),
    ],
)
def test_a_wall_stops_a_robot_from_either_side_and_only_across(wall, start, direction, stop):
    assert Board(4, [wall]).slide(start, direction, ()) == stop


def test_a_robot_stops_before_another():
    assert Board(4).slide(4, RIGHT, (6,)) == 5
    assert Board(4).slide(4, RIGHT, (5,)) == 4


def episode(robots: tuple[int, ...], target: int, *words: str) -> Ricochet:
    settings = tiny("board.size=4", "obs_mode=symbolic", f"board.robots={len(robots)}", *words)
    env = Ricochet(settings, [Level(Board(4), robots, target)])
    env.reset(seed=1)
    return env


def test_the_first_robot_has_to_stop_on_the_target():
    env = episode((4, 0), 6)
    _, reward, solved, late, _ = env.step(RIGHT)
    assert (env.robots, reward, solved, late) == ([7, 0], MOVE, False, False), "it slid across the target"
    env = episode((4, 7), 6)
    _, reward, solved, late, _ = env.step(RIGHT)
    assert (env.robots, reward, solved, late) == ([6, 7], SOLVED, True, False)


def test_another_robot_on_the_target_is_no_solution():
    env = episode((0, 4), 7)
    _, reward, solved, _, _ = env.step(4 + RIGHT)
    assert (env.robots, reward, solved) == ([0, 7], MOVE, False)


def test_an_episode_is_cut_off_after_its_steps_unless_the_last_one_solves_it():
    env = episode((4, 0), 7, "max_episode_steps=2")
    assert env.step(UP)[2:4] == (False, False)
    assert env.step(UP)[2:4] == (False, True)
    env = episode((4, 0), 7, "max_episode_steps=1")
    assert env.step(RIGHT)[2:4] == (True, False)


def test_every_level_can_be_solved_within_its_moves():
    levels = make_levels(BoardSettings(walls=30, levels=12, moves=2), np.random.default_rng(3))
    assert len({level.board.walls for level in levels}) == 12
    for level in levels:
        assert level.target not in level.robots
        assert len(level.board.walls) == 30
        reached = set()
        for first, second in product(range(4), repeat=2):
            halfway = level.board.slide(level.robots[0], first, level.robots[1:])
            reached |= {halfway, level.board.slide(halfway, second, level.robots[1:])}
        assert level.target in reached


def test_a_plane_marks_each_robot_the_target_and_the_walls_of_either_kind():
    seen = planes(Board(3, [(0, RIGHT), (4, DOWN), (1, DOWN)]), (2, 3), 8)
    marked = [[int(cell) for cell in np.flatnonzero(plane)] for plane in seen]
    assert marked == [[2], [3], [8], [0], [1, 4]]
    assert seen.shape == (5, 3, 3)


# ---- pictures ----


def test_a_picture_has_everything_where_it_is():
    board = Board(4, [(5, RIGHT)])
    image = Drawing(4, ImageSettings(cell=11, size=44), cached=False).observe(board, (0, 10), 3)
    assert image.shape == (3, 44, 44)
    pixel = {place: tuple(image[(slice(None), *place)].tolist()) for place in np.ndindex(44, 44)}
    assert pixel[5, 5] == ROBOTS[0]
    assert pixel[2 * 11 + 5, 2 * 11 + 5] == ROBOTS[1]
    assert pixel[5, 3 * 11 + 5] == ROBOTS[0], "the target's star"
    assert pixel[2, 3 * 11 + 2] == INLAY, "between two of its points"
    assert pixel[11 + 5, 11 + 10] == pixel[11 + 5, 2 * 11] == WALL, "both sides of the wall"
    assert pixel[2 * 11 + 5, 11 + 10] == LINE
    assert pixel[11 + 5, 11 + 1] == FLOOR
    assert {pixel[0, 20], pixel[43, 20], pixel[20, 0], pixel[20, 43]} == {WALL}


def test_cached_pictures_are_the_same_to_the_last_bit(monkeypatch):
    drawn: list[Board] = []
    draw = Drawing._draw_grid
    monkeypatch.setattr(
        Drawing, "_draw_grid", lambda self, pen, board: (drawn.append(board), draw(self, pen, board))[1]
    )
    levels = make_levels(BoardSettings(levels=3, robots=3), np.random.default_rng(1))
    each, cached = (Drawing(8, ImageSettings(size=48), cached=cached) for cached in (False, True))
    chance = np.random.default_rng(2)
    pictures = set()
    for number in range(60):
        board = levels[number % 3].board
        *robots, target = (int(cell) for cell in chance.choice(64, 4, replace=False))
        one, other = each.observe(board, robots, target), cached.observe(board, robots, target)
        assert np.array_equal(one, other)
        pictures.add(one.tobytes())
    assert len(pictures) == 60
    assert len(drawn) == 60 + 3


# ---- memory ----


def test_on_a_single_cell_the_layer_is_an_lstm():
    torch.manual_seed(1)
    layer, lstm = ConvLstmLayer(3, 5), torch.nn.LSTM(3, 5)
    # torch has the new content before the output gate.
    order = torch.cat([torch.arange(5) + 5 * gate for gate in (0, 1, 3, 2)])
    with torch.no_grad():
        lstm.weight_ih_l0.copy_(layer.of_input.weight[order, :, 1, 1])
        lstm.weight_hh_l0.copy_(layer.of_hidden.weight[order, :, 1, 1])
        lstm.bias_ih_l0.copy_(layer.of_input.bias[order])
        lstm.bias_hh_l0.zero_()
        cells, hidden, cell = torch.randn(6, 2, 3), torch.randn(2, 5), torch.randn(2, 5)
        outputs, _ = layer(cells[..., None, None], (hidden[..., None, None], cell[..., None, None]), torch.zeros(6, 2))
        expected, _ = lstm(cells, (hidden[None], cell[None]))
    torch.testing.assert_close(outputs[..., 0, 0], expected)


def policy_of(*words: str) -> Any:
    return make_model(tiny("obs_mode=symbolic", *words)).policy


def blank(policy: Any, sequences: int) -> RNNStates:
    layers, _, size = policy.lstm_hidden_state_shape
    zeros = (torch.zeros(layers, sequences, size), torch.zeros(layers, sequences, size))
    return RNNStates(zeros, zeros)


def test_the_update_sees_the_steps_of_the_rollout():
    policy = policy_of()
    observations = torch.rand(7, 3, *policy.observation_space.shape)
    starts = torch.zeros(7, 3)
    starts[0] = starts[4, 1] = 1
    states = blank(policy, 3)
    done = []
    with torch.no_grad():
        for observation, start in zip(observations, starts):
            actions, values, log_probs, states = policy(observation, states, start)
            done.append((actions, values.flatten(), log_probs))
        actions, values, log_probs = (torch.stack(parts, 1).flatten() for parts in zip(*done))
        learned = policy.evaluate_actions(
            observations.transpose(0, 1).flatten(0, 1), actions, blank(policy, 3), starts.T.flatten()
        )
    torch.testing.assert_close(learned[0].flatten(), values)
    torch.testing.assert_close(learned[1], log_probs)


def test_it_remembers_what_it_saw_until_an_episode_starts():
    policy = policy_of()
    first, second = torch.rand(2, 2, *policy.observation_space.shape)
    second[1] = second[0]
    with torch.no_grad():
        *_, states = policy(first, blank(policy, 2), torch.ones(2))
        going_on = policy.predict_values(second, states.vf, torch.zeros(2))
        anew = policy.predict_values(second, states.vf, torch.ones(2))
    assert going_on[0] != going_on[1]
    torch.testing.assert_close(anew[0], anew[1])


# ---- training ----


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    easy = ("board.levels=1", "board.moves=1", "envs=16", "batch_size=64", "iterations=5")
    words = (*easy, "--", "cached_rendering=true", "iterations=2")
    return train_twice("ricochet", tmp_path_factory.mktemp("ricochet"), *words)


@pytest.mark.long
def test_it_learns_from_pictures(trained):
    first, *_, last = trained.alone
    assert last > 2 * first


@pytest.mark.long
def test_neither_recording_nor_cached_rendering_changes_a_score(trained):
    trained.check(steps=5 * 128, iterations=5)


@pytest.mark.long
def test_the_training_has_hardly_any_time_of_its_own(trained):
    (total,) = (row for row in trained.facts.breakdown.rows if row.operation == "training_total")
    assert total.ledger_ns <= 0.05 * trained.facts.breakdown.wall_ns


@pytest.mark.long
def test_every_operation_of_the_document_is_timed_in_its_category(trained):
    category = {name: category for category, names in DOCUMENTED.items() for name in names.split()}
    found = {operation.operation: operation for operation in trained.facts.operations}
    assert {name: found[name].category for name in category if name in found} == category
    assert found["training_total"].calls == 1
    # The first observations of 16 environments, one per step, and one for every episode that ended.
    drawn = 16 + 5 * 128 + trained.facts.progress.episodes
    assert found["env_rgb_draw_grid"].calls == found["env_rgb_resizing"].calls == drawn


@pytest.mark.long
def test_everything_has_a_component(trained):
    trained.check_components(COMPONENTS, most_elsewhere=0.01)


@pytest.mark.long
@pytest.mark.parametrize(
    "words", [("convlstm=false",), ("obs_mode=symbolic",), ("obs_mode=symbolic", "convlstm=false")]
)
def test_two_trainings_are_the_same_with_every_observation_and_memory(words):
    settings = [tiny(*words, f"seed={seed}", "board.moves=1", "iterations=4") for seed in (1, 1, 2)]
    scores = [scores_of("ricochet", one) for one in settings]
    assert scores[0] == scores[1]
    assert scores[0] != scores[2]


def test_its_parts_return_the_number_of_their_steps():
    assert {name: part() for name, part in parts(tiny()).items()} == {"environment": 4, "policy": 4, "update": 16}


@pytest.mark.long
def test_the_documents_flags_leave_a_report_with_its_operations(tmp_path):
    flags = "--obs-mode rgb_image --convlstm --enable-profiling --profiling-report my_report.json"
    words = (*flags.split(), "--profiling-summary-freq", "32", "--timesteps", "60", *TINY)
    done = rlprof(tmp_path, "train", "ricochet", *words)
    assert "ricochet: 64 steps" in done.stdout, "as many whole iterations as it takes"
    assert "rlprof: 4 iterations in" in done.stderr, "a summary"
    report = json.loads((tmp_path / "my_report.json").read_text())
    named = {operation["operation"] for operation in report["facts"]["operations"]}
    assert named >= {"training_total", *" ".join(DOCUMENTED.values()).split()}
