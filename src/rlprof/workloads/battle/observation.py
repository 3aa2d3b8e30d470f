"""Observations and the 11 actions of a player.

0 to 3 are the moves of the active Pokemon, 4 to 9 switch to the first to sixth of the team, and 10 is the only option
of a Pokemon without a choice: struggle or recharge.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from poke_env.battle import Battle, Move, MoveCategory, Pokemon, PokemonType
from poke_env.data import GenData

ACTIONS = 11
MOVES = 4
TEAM = 6
FORCED = 10
WITHOUT_CHOICE = ("struggle", "recharge")
BOOSTS = ("atk", "def", "spa", "spd", "spe")

OBSERVATION = MOVES * 4 + TEAM * 6 + 2 * (2 + len(BOOSTS)) + 6

Observation = NDArray[np.float32]
Mask = NDArray[np.bool_]


def choices(battle: Battle) -> list[str]:
    """The order to the server for each action. Empty if the action is not allowed."""
    request = battle.last_request
    found = [""] * ACTIONS
    if not battle.force_switch:
        for slot, move in enumerate(request.get("active", [{"moves": []}])[0]["moves"]):
            if not move.get("disabled", False):
                found[FORCED if move["id"] in WITHOUT_CHOICE else slot] = f"move {slot + 1}"
    if not battle.maybe_trapped:
        seats = {pokemon["ident"]: seat for seat, pokemon in enumerate(request["side"]["pokemon"], 1)}
        for index, (ident, pokemon) in enumerate(battle.team.items()):
            if pokemon in battle.available_switches:
                found[MOVES + index] = f"switch {seats[ident]}"
    if not any(found):
        found[FORCED] = "default"
    return found


def observe(battle: Battle, orders: list[str]) -> Observation:
    """Encode a battle. `orders` comes from `choices`."""
    return np.fromiter(_features(battle, orders), dtype=np.float32, count=OBSERVATION)


def worth(battle: Battle) -> float:
    """The player's lead over the opponent, from -2 to 2: remaining health, and who has won."""
    ahead = sum(pokemon.current_hp_fraction for pokemon in battle.team.values()) - TEAM
    ahead -= sum(pokemon.current_hp_fraction - 1 for pokemon in battle.opponent_team.values())
    return ahead / TEAM + (1 if battle.won else -1 if battle.lost else 0)


def damage(move: Move, own: Pokemon, other: Pokemon) -> float:
    """Estimated damage of a move. 1 for a typical one."""
    kind = _kind(move.id, move.gen)
    if not kind.power:
        return 0.0
    same_type = 1.5 if kind.type in own.types else 1.0
    strength = own.base_stats[kind.attack] / other.base_stats[kind.defence]
    return kind.power * same_type * strength * _effect(kind.type, other)


class _Kind(NamedTuple):
    """Constant properties of a move, cached because poke-env looks them up on each access."""

    power: float
    type: PokemonType
    attack: str
    defence: str


@cache
def _kind(move_id: str, generation: int) -> _Kind:
    move = Move(move_id, generation)
    power = (60 if move.damage else move.base_power * move.expected_hits) * move.accuracy / 100
    if move.category is MoveCategory.STATUS:
        power = 0.0
    physical = move.category is MoveCategory.PHYSICAL
    return _Kind(power, move.type, *(("atk", "def") if physical else ("spa", "spd")))


def _effect(kind: PokemonType, other: Pokemon) -> float:
    return _multiplier(kind, other.type_1, other.type_2, other.gen)


@cache
def _multiplier(kind: PokemonType, first: PokemonType, second: PokemonType | None, generation: int) -> float:
    return kind.damage_multiplier(first, second, type_chart=GenData.from_gen(generation).type_chart)


def _features(battle: Battle, allowed: list[str]) -> Iterator[float]:
    own, other = battle.active_pokemon, battle.opponent_active_pokemon
    moves = list(own.moves.values())[:MOVES] if own is not None else []
    for slot in range(MOVES):
        if slot >= len(moves) or own is None or other is None:
            yield from (0.0, 0.0, 0.0, 0.0)
            continue
        yield float(bool(allowed[slot]))
        yield damage(moves[slot], own, other)
        kind = _kind(moves[slot].id, moves[slot].gen)
        yield _effect(kind.type, other) / 2
        yield float(not kind.power)
    team = list(battle.team.values())
    for index in range(TEAM):
        if index >= len(team):
            yield from (0.0,) * 6
            continue
        pokemon = team[index]
        yield pokemon.current_hp_fraction
        yield float(pokemon is own)
        yield float(bool(allowed[MOVES + index]))
        yield float(pokemon.status is not None)
        yield max((damage(move, pokemon, other) for move in pokemon.moves.values()), default=0.0) if other else 0.0
        yield max(_effect(kind, pokemon) for kind in other.types) / 2 if other else 0.0
    for fighter in (own, other):
        if fighter is None:
            yield from (0.0,) * (2 + len(BOOSTS))
            continue
        yield fighter.current_hp_fraction
        yield float(fighter.status is not None)
        yield from (fighter.boosts[boost] / 6 for boost in BOOSTS)
    yield sum(not pokemon.fainted for pokemon in team) / TEAM
    yield 1 - sum(pokemon.fainted for pokemon in battle.opponent_team.values()) / TEAM
    yield float(battle.force_switch)
    yield float(bool(allowed[FORCED]))
    yield (own.base_stats["spe"] - other.base_stats["spe"]) / 100 if own and other else 0.0
    yield battle.turn / 100
