"""A recurrent network that looks back: a linear layer, an LSTM, attention over what the LSTM said lately, an MLP.

The policy and the value network are one each, with nothing in common.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from rlprof.workloads.battle.observation import OBSERVATION
from rlprof.workloads.battle.settings import BattleSettings


class Memory(NamedTuple):
    """Of battles (B) that are under way."""

    hidden: Tensor
    """1 x B x hidden, as the LSTM has it."""
    cell: Tensor
    keys: Tensor
    """Of what the LSTM said lately: memory x B x hidden, the latest last."""
    values: Tensor
    known: Tensor
    """How many of these there were: B."""

    def where(self, rows: Tensor, other: Memory) -> Memory:
        """These in some rows, the others elsewhere."""
        column = rows[None, :, None]
        return Memory(
            torch.where(column, self.hidden, other.hidden),
            torch.where(column, self.cell, other.cell),
            torch.where(column, self.keys, other.keys),
            torch.where(column, self.values, other.values),
            torch.where(rows, self.known, other.known),
        )


class BattleNetwork(nn.Module):
    def __init__(self, outputs: int, last_gain: float, settings: BattleSettings) -> None:
        super().__init__()
        hidden = settings.hidden
        self._hidden, self._heads, self._look_back = hidden, settings.heads, settings.memory
        self.embedding = nn.Linear(OBSERVATION, hidden)
        self.lstm = nn.LSTM(hidden, hidden)
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.head = nn.Sequential(
            nn.Linear(2 * hidden, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, outputs)
        )
        nn.init.orthogonal_(self.head[-1].weight, last_gain)  # type: ignore[arg-type]  # a Linear's weight
        nn.init.zeros_(self.head[-1].bias)  # type: ignore[arg-type]

    def empty(self, battles: int) -> Memory:
        """At the beginning of battles."""
        weight = self.embedding.weight
        state = weight.new_zeros(1, battles, self._hidden)
        recent = weight.new_zeros(self._look_back, battles, self._hidden)
        return Memory(state, state, recent, recent, torch.zeros(battles, dtype=torch.int64, device=weight.device))

    def forward(self, observations: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Of T decisions in B battles each, T x B x features: T x B x outputs, and what is remembered of them."""
        said, (hidden, cell) = self.lstm(torch.relu(self.embedding(observations)), memory[:2])
        keys = torch.cat([memory.keys, self.key(said)])
        values = torch.cat([memory.values, self.value(said)])
        seen = self._attend(self.query(said), keys, values, memory.known)
        back = self._look_back
        known = (memory.known + len(said)).clamp(max=back)
        return self.head(torch.cat([said, seen], -1)), Memory(hidden, cell, keys[-back:], values[-back:], known)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, known: Tensor) -> Tensor:
        """Each decision to itself and those before it that are remembered."""
        back = self._look_back
        positions = torch.arange(len(keys), device=keys.device)
        now = back + torch.arange(len(query), device=keys.device)[:, None]
        near = (positions <= now) & (positions > now - back)
        real = positions >= back - known[:, None]
        allowed = (near[None] & real[:, None])[:, None]
        seen = nn.functional.scaled_dot_product_attention(
            self._by_head(query), self._by_head(keys), self._by_head(values), allowed
        )
        return seen.permute(2, 0, 1, 3).flatten(2)

    def _by_head(self, steps: Tensor) -> Tensor:
        return steps.reshape(*steps.shape[:2], self._heads, -1).permute(1, 2, 0, 3)
