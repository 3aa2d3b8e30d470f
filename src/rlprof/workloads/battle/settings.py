"""The settings of battle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlprof.workloads.settings import Count, Positive, PPOSettings, Settings, Share, setting

TYPICAL_TURNS = 50
"""Typical number of decisions in a battle, to estimate how many battles `timesteps` take."""

Format = Literal[
    "gen1randombattle", "gen2randombattle", "gen3randombattle", "gen4randombattle", "gen5randombattle",
    "gen6randombattle", "gen7randombattle", "gen8randombattle", "gen9randombattle",
]  # fmt: skip


@dataclass(frozen=True)
class BattleSettings(PPOSettings, Settings):
    batched_inference: bool = False
    """Run the networks once for all threads, instead of once per thread."""
    setup: bool = False
    """Install the game server with npm and exit."""
    server: str = ""
    """Address of a running game server, as host:port or ws://host:port/showdown/websocket (default: start one)."""
    server_dir: str = ""
    """Folder of the game server (default: rlprof/pokemon-showdown in $XDG_DATA_HOME or ~/.local/share)."""
    battle_format: Format = "gen1randombattle"
    """Rules of the battles. The first generation is the fastest."""
    opponent: Literal["random", "max_damage", "self"] = "random"
    """Opponent that plays random moves, the move with the most damage, or the policy itself."""
    iterations: Count = setting(14, "--episodes")
    """Number of iterations. Each plays one battle per environment and updates the policy."""
    envs: Count = setting(8, "--parallel")
    """Number of battles at the same time, one thread each."""
    max_turns: Count = 200
    """Most decisions of a battle, after which it is forfeited."""
    hidden: Count = 256
    """Units of the first layer, the LSTM and the attention of each network."""
    heads: Count = 8
    """Number of attention heads. Must divide --hidden."""
    memory: Count = 16
    """Number of earlier decisions that the attention sees."""
    batch_size: Count = 4
    """Battles per gradient step."""
    epochs: Count = 4
    """Passes over the battles of each iteration."""
    learning_rate: Positive = 5e-4
    gamma: Share = 0.997
    max_gradient: Positive = 0.5
    """Largest norm of the gradients."""

    @property
    def players(self) -> int:
        """Players of a battle for which the agent plays."""
        return 2 if self.opponent == "self" else 1

    @property
    def steps_per_iteration(self) -> int:
        """An estimate, because battles differ in length."""
        return self.envs * TYPICAL_TURNS
