"""The settings of battle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlprof.workloads.settings import Count, Positive, PPOSettings, Settings, Share, setting

TYPICAL_TURNS = 50
"""Decisions of a battle between random players. Used to estimate how many battles `timesteps` take."""

Format = Literal[
    "gen1randombattle", "gen2randombattle", "gen3randombattle", "gen4randombattle", "gen5randombattle",
    "gen6randombattle", "gen7randombattle", "gen8randombattle", "gen9randombattle",
]  # fmt: skip


@dataclass(frozen=True)
class BattleSettings(PPOSettings, Settings):
    batched_inference: bool = False
    """Answer all threads together in one forward pass, instead of one thread at a time."""
    setup: bool = False
    """Only install the game server with npm, then exit."""
    server: str = ""
    """Running server to play on: host:port or ws://host:port/showdown/websocket (default: start one)."""
    server_dir: str = ""
    """Folder of the game server (default: rlprof/pokemon-showdown in the user's data folder)."""
    battle_format: Format = "gen1randombattle"
    """Rules of the battles. Those of the first generation are the fastest."""
    opponent: Literal["random", "max_damage", "self"] = "random"
    """The opponent: random moves, the move with the most damage, or the policy itself."""
    iterations: Count = setting(14, "--episodes")
    """Episodes. Each is one battle per environment, then an update."""
    envs: Count = setting(8, "--parallel")
    """Battles at the same time, one thread each."""
    max_turns: Count = 200
    """Decisions after which a battle is forfeited."""
    hidden: Count = 256
    """Units of a network's first layer, its LSTM and its attention."""
    heads: Count = 8
    """Attention heads. Must divide --hidden."""
    memory: Count = 16
    """Earlier decisions of a battle that the attention sees."""
    batch_size: Count = 4
    """Battles per gradient step."""
    epochs: Count = 4
    """Passes over the battles of an episode."""
    learning_rate: Positive = 5e-4
    gamma: Share = 0.997
    max_gradient: Positive = 0.5
    """Norm to which gradients are clipped."""

    @property
    def players(self) -> int:
        """Players of a battle for which the agent plays."""
        return 2 if self.opponent == "self" else 1

    @property
    def steps_per_iteration(self) -> int:
        """An estimate, because battles differ in length."""
        return self.envs * TYPICAL_TURNS
