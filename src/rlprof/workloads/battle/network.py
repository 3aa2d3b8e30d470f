"""A recurrent network: a linear layer, an LSTM, attention over the LSTM's last outputs, and an MLP.

The policy and the value network are two separate ones.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from rlprof.workloads.battle.observation import OBSERVATION
from rlprof.workloads.battle.settings import BattleSettings


class Memory(NamedTuple):
    """Memory of B battles that are being played."""

    hidden: Tensor
    """State of the LSTM: 1 x B x hidden."""
    cell: Tensor
    keys: Tensor
    """Attention keys of the LSTM's last outputs: memory x B x hidden, the latest last."""
    values: Tensor
    known: Tensor
    """Number of valid keys per battle: B."""

    def where(self, rows: Tensor, other: Memory) -> Memory:
        """This memory in `rows`, and the other one elsewhere."""
        pairs = zip(self[:-1], other[:-1])
        hidden, cell, keys, values = (torch.where(rows[None, :, None], own, its) for own, its in pairs)
        return Memory(hidden, cell, keys, values, torch.where(rows, self.known, other.known))


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
        weight = self.embedding.weight
        state = weight.new_zeros(1, battles, self._hidden)
        recent = weight.new_zeros(self._look_back, battles, self._hidden)
        return Memory(state, state, recent, recent, torch.zeros(battles, dtype=torch.int64, device=weight.device))

    def forward(self, observations: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Outputs (T x B x outputs) of T decisions in B battles each (T x B x features), and the memory after them."""
        outputs, (hidden, cell) = self.lstm(torch.relu(self.embedding(observations)), memory[:2])
        keys = torch.cat([memory.keys, self.key(outputs)])
        values = torch.cat([memory.values, self.value(outputs)])
        seen = self._attend(self.query(outputs), keys, values, memory.known)
        back = self._look_back
        known = (memory.known + len(outputs)).clamp(max=back)
        return self.head(torch.cat([outputs, seen], -1)), Memory(hidden, cell, keys[-back:], values[-back:], known)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, known: Tensor) -> Tensor:
        """Attention from each decision to itself and to the remembered ones before it."""
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
