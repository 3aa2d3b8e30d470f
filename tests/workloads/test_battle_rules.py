"""Battles from hand-made requests, and consistency of the networks. Needs no server."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from poke_env.battle import Battle, Move

from rlprof.workloads.battle.agent import BatchedAgent, Choice, Networks, SingleAgent, sample
from rlprof.workloads.battle.environment import Played, at_random, max_damage
from rlprof.workloads.battle.observation import ACTIONS, OBSERVATION, choices, damage, observe, worth
from rlprof.workloads.battle.settings import BattleSettings
from rlprof.workloads.battle.training import advantages_of, batch_of, loss_of

# ---- the rules, by hand ----


def pokemon(ident, details, moves, condition="200/200", active=False):
    stats = dict.fromkeys(("atk", "def", "spa", "spd", "spe"), 100)
    return {
        "ident": f"p1: {ident}", "details": details, "condition": condition, "active": active, "stats": stats,
        "moves": moves, "baseAbility": "noability", "item": "", "pokeball": "pokeball", "ability": "noability",
    }  # fmt: skip


PIKACHU = pokemon("Pikachu", "Pikachu, L80", ["thunderbolt", "slam", "thunderwave", "surf"], active=True)
SNORLAX = pokemon("Snorlax", "Snorlax, L70", ["bodyslam", "rest", "earthquake", "selfdestruct"])
GONE = pokemon("Onix", "Onix, L80", ["earthquake", "rockslide", "bodyslam", "explosion"], condition="0 fnt")


def move(id, disabled=False):
    return {"move": id, "id": id, "pp": 10, "maxpp": 16, "target": "normal", "disabled": disabled}


def battle_of(active=None, team=(PIKACHU, SNORLAX, GONE), opponent="Gyarados, L80", **request):
    """A battle in which Pikachu has to decide."""
    battle = Battle("battle-gen1randombattle-1", "me", None, 1)
    battle.player_role = "p1"
    side = {"name": "me", "id": "p1", "pokemon": list(team)}
    given = {"active": [active or {"moves": [move(id) for id in PIKACHU["moves"]]}], "side": side, "rqid": 1, **request}
    battle.parse_request({name: value for name, value in given.items() if value is not None})
    battle.parse_message(["", "switch", "p1a: Pikachu", "Pikachu, L80", "200/200"])
    battle.parse_message(["", "switch", f"p2a: {opponent.split(',')[0]}", opponent, "100/100"])
    battle.parse_request({name: value for name, value in given.items() if value is not None})
    return battle


def test_moves_come_first_then_the_team_in_its_order():
    assert choices(battle_of()) == ["move 1", "move 2", "move 3", "move 4", "", "switch 2", "", "", "", "", ""]


def test_a_disabled_move_may_not_be_chosen():
    active = {"moves": [move("thunderbolt"), move("slam", disabled=True), move("thunderwave"), move("surf")]}
    assert choices(battle_of(active))[:4] == ["move 1", "", "move 3", "move 4"]


def test_the_team_keeps_its_places_when_the_server_lists_it_in_another_order():
    battle = battle_of()
    side = {"name": "me", "id": "p1", "pokemon": [{**SNORLAX, "active": True}, {**PIKACHU, "active": False}, GONE]}
    battle.parse_message(["", "switch", "p1a: Snorlax", "Snorlax, L70", "200/200"])
    battle.parse_request({"active": [{"moves": [move("rest")]}], "side": side, "rqid": 2})
    assert choices(battle)[4:10] == ["switch 2", "", "", "", "", ""]


def test_a_fainted_pokemon_must_be_replaced():
    team = ({**PIKACHU, "condition": "0 fnt"}, SNORLAX, GONE)
    assert [order for order in choices(battle_of(team=team, active=None, forceSwitch=[True])) if order] == ["switch 2"]


@pytest.mark.parametrize("forced", ["recharge", "struggle"])
def test_the_last_action_is_that_of_a_pokemon_without_a_choice(forced):
    active = {"moves": [move(forced)], "trapped": True}
    assert choices(battle_of(active)) == [""] * 10 + ["move 1"]


def test_there_are_eleven_actions_and_an_observation_of_one_size():
    battle = battle_of()
    seen = observe(battle, choices(battle))
    assert len(choices(battle)) == ACTIONS == 11
    assert seen.shape == (OBSERVATION,)
    assert np.isfinite(seen).all()


def test_damage_knows_types_and_who_uses_a_move():
    gyarados, onix = battle_of(), battle_of(opponent="Onix, L80")
    pikachu, other = gyarados.active_pokemon, gyarados.opponent_active_pokemon
    bolt, slam, wave = (Move(id, 1) for id in ("thunderbolt", "slam", "thunderwave"))
    strength = pikachu.base_stats["spa"] / other.base_stats["spd"]
    assert damage(bolt, pikachu, other) == pytest.approx(0.95 * 1.5 * 4 * strength)  # water and flying
    assert damage(bolt, pikachu, onix.opponent_active_pokemon) == 0  # ground
    assert damage(slam, pikachu, other) == pytest.approx(
        0.8 * 0.75 * pikachu.base_stats["atk"] / other.base_stats["def"]
    )
    assert damage(wave, pikachu, other) == 0


def test_worth_is_health_and_who_has_won():
    battle = battle_of(team=(PIKACHU, SNORLAX))
    assert worth(battle) == pytest.approx((2 - 6) / 6)  # four of the team are missing
    battle.parse_message(["", "-damage", "p2a: Gyarados", "25/100"])
    assert worth(battle) == pytest.approx((2 - 6 + 0.75) / 6)
    battle.won_by("me")
    assert worth(battle) == pytest.approx((2 - 6 + 0.75) / 6 + 1)


def test_opponents_choose_what_their_names_promise():
    battle = battle_of()
    assert max_damage(battle) == "move 1"
    assert max_damage(battle_of(opponent="Onix, L80")) == "move 4"  # surf
    opponent = at_random(random.Random(1))
    assert {opponent(battle) for _ in range(200)} == {"move 1", "move 2", "move 3", "move 4", "switch 2"}


# ---- the networks and what is learned ----


SMALL = BattleSettings(hidden=16, heads=2, memory=4, envs=3)


def networks():
    torch.manual_seed(1)
    return Networks(SMALL)


def played(length, seed=0):
    chance = np.random.default_rng(seed)
    return Played(
        [chance.normal(size=OBSERVATION).astype(np.float32) for _ in range(length)],
        [np.ones(ACTIONS, dtype=bool)] * length,
        [Choice(int(chance.integers(ACTIONS)), -2.0, 0.5)] * length,
        [0.0] * (length - 1) + [1.0],
    )


def test_a_battle_played_step_by_step_is_the_battle_learned_at_once():
    network = networks().policy
    battle = torch.randn(9, 2, OBSERVATION)
    at_once, _ = network(battle, network.empty(2))
    memory, steps = network.empty(2), []
    for observation in battle:
        logits, memory = network(observation[None], memory)
        steps.append(logits[0])
    assert torch.allclose(at_once, torch.stack(steps), atol=1e-6)


def test_a_longer_battle_beside_it_changes_nothing_for_a_battle():
    short, long = played(5), played(11, seed=1)
    batch = batch_of([short, long], SMALL)
    alone, beside = batch.pick(torch.tensor([0])), batch.pick(torch.tensor([0, 1]))
    cut = type(alone)(*(column[:5] for column in alone))
    only_first = beside.real.clone()
    only_first[:, 1] = False
    both = beside._replace(real=only_first)
    agent = networks()
    assert torch.allclose(loss_of(agent, cut, SMALL), loss_of(agent, both, SMALL), atol=1e-6)


def test_advantages_look_ahead_by_gamma_and_lambda():
    battle = Played([], [], [Choice(0, 0.0, 1.0), Choice(0, 0.0, 2.0)], [0.0, 3.0])
    settings = BattleSettings(gamma=0.5, gae_lambda=0.5)
    assert advantages_of(battle, settings) == [0.5 * 2 - 1 + 0.25 * 1, 3 - 2]


def test_an_answer_does_not_depend_on_the_other_players():
    everybody = dict(enumerate(played(3).observations))
    together = BatchedAgent(networks(), 3, 3).forward(everybody, set(everybody))
    for player, seen in everybody.items():
        logits, value = BatchedAgent(networks(), 3, 3).forward({player: seen}, {player})[player]
        assert torch.equal(logits, together[player][0])
        assert value == together[player][1]


def test_a_player_that_does_not_act_keeps_its_memory():
    seen = played(6).observations
    busy, calm = BatchedAgent(networks(), 3, 3), BatchedAgent(networks(), 3, 3)
    for agent in (busy, calm):
        agent.forward({0: seen[0]}, {0})
    busy.forward({1: seen[1], 2: seen[2]}, {1, 2})
    logits = [agent.forward({0: seen[3]}, set())[0][0] for agent in (busy, calm)]
    assert torch.equal(*logits)


def test_batched_and_single_answers_agree_except_for_rounding():
    seen, mask = played(2).observations, np.ones(ACTIONS, dtype=bool)
    alone, together = SingleAgent(networks(), 1), BatchedAgent(networks(), 1, 1)
    together.begin(0)
    for observation in seen:
        one, other = (agent.choose(0, observation, mask, random.Random(1)) for agent in (alone, together))
        assert one.action == other.action
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5)
        assert one.value == pytest.approx(other.value, abs=1e-5)


def test_actions_are_sampled_by_their_probabilities_and_only_allowed_ones():
    chance, mask = random.Random(1), np.zeros(ACTIONS, dtype=bool)
    mask[[2, 7]] = True
    logits = torch.zeros(ACTIONS)
    logits[7] = np.log(3)
    actions = [sample(logits, mask, chance)[0] for _ in range(2000)]
    assert set(actions) == {2, 7}
    assert actions.count(7) / 2000 == pytest.approx(0.75, abs=0.04)
    assert sample(logits, mask, chance)[1] in (pytest.approx(np.log(0.25)), pytest.approx(np.log(0.75)))
