"""The settings of battle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlprof.workloads.settings import Count, Positive, Settings, Share, setting

TYPICAL_TURNS = 50
"""Of a battle between players that choose at random; what decides how many battles `timesteps` are thought to take."""

Format = Literal[
    "gen1randombattle", "gen2randombattle", "gen3randombattle", "gen4randombattle", "gen5randombattle",
    "gen6randombattle", "gen7randombattle", "gen8randombattle", "gen9randombattle",
]  # fmt: skip


@dataclass(frozen=True)
class BattleSettings(Settings):
    batched_inference: bool = False
    """answer all threads together, in one forward pass, instead of each for itself"""
    setup: bool = False
    """only install the game server, with npm, and end"""
    server: str = ""
    """a running server to play on, host:port or ws://host:port/showdown/websocket; none is started then"""
    server_dir: str = ""
    """where the game server is installed; rlprof/pokemon-showdown in the user's data folder unless told"""
    battle_format: Format = "gen1randombattle"
    """rules of the battles; the first generation's are the fastest"""
    opponent: Literal["random", "max_damage", "self"] = "random"
    """what the other side does: anything, what hurts most, or what the policy says"""
    iterations: Count = setting(14, "--episodes")
    """episodes: one battle in every environment, then an update"""
    envs: Count = setting(8, "--parallel")
    """battles at the same time, a thread each"""
    max_turns: Count = 200
    """decisions after which a battle is given up"""
    hidden: Count = 256
    """units of a network's first layer, its LSTM and its attention"""
    heads: Count = 8
    """of the attention; a divisor of hidden"""
    memory: Count = 16
    """earlier decisions of a battle that the attention looks back on"""
    batch_size: Count = 4
    """battles in a gradient step"""
    epochs: Count = 4
    """passes over the battles of an episode"""
    learning_rate: Positive = 5e-4
    """of Adam"""
    gamma: Share = 0.997
    """discount of the reward"""
    gae_lambda: Share = 0.95
    """how far an advantage looks ahead"""
    clip: Positive = 0.2
    """how far a probability ratio may leave 1"""
    entropy: float = 0.01
    """weight of the entropy bonus"""
    max_gradient: Positive = 0.5
    """norm that gradients are clipped to"""

    @property
    def players(self) -> int:
        """Of a battle, that the agent plays for."""
        return 2 if self.opponent == "self" else 1

    @property
    def steps_per_iteration(self) -> int:
        """About: a battle takes as long as it takes."""
        return self.envs * TYPICAL_TURNS
