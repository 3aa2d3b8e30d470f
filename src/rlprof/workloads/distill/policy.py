"""The student: a Perceiver that reads the nearest tokens, and an LSTM."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, one_hot, scaled_dot_product_attention

from rlprof.workloads.distill.settings import DistillSettings, PolicySettings
from rlprof.workloads.distill.tokens import ACTIONS, FEATURES, NOTHING, OWN, RADIUS

State = tuple[Tensor, Tensor]
"""State of the LSTM: [1, pupils, width] twice."""

_WRITTEN = 8 * FEATURES


class Layer(nn.Module):
    """Latents attend to the tokens, then pass through an MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_norm, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.output = nn.Linear(width, width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, latents: Tensor, keys: Tensor, values: Tensor, there: Tensor) -> Tensor:
        """latents [n, latents, width]; keys and values [n, heads, tokens, ...]; there [n, tokens]: True for real
        tokens."""
        query = split(self.query(self.query_norm(latents)), self.heads)
        attended = scaled_dot_product_attention(query, keys, values, attn_mask=there[:, None, None])
        latents = latents + self.output(attended.transpose(1, 2).flatten(2))
        computed: Tensor = latents + self.narrow(gelu(self.widen(self.norm(latents))))
        return computed


class Student(nn.Module):
    def __init__(self, settings: PolicySettings) -> None:
        super().__init__()
        width = settings.width
        self.tokens, self.heads = settings.tokens, settings.heads
        self.embed = nn.Linear(_WRITTEN, width)
        self.norm = nn.LayerNorm(width)
        self.keys, self.values = nn.Linear(width, width), nn.Linear(width, width)
        self.latents = nn.Parameter(torch.randn(settings.latents, width) * 0.5)
        self.bid = nn.Linear(OWN, width)
        self.layers = nn.ModuleList(Layer(width, settings.heads) for _ in range(settings.layers))
        self.gather = nn.Linear(settings.latents * width, width)
        self.memory = nn.LSTM(width, width)
        self.actor, self.critic = nn.Linear(width, ACTIONS), nn.Linear(width, 1)
        nn.init.orthogonal_(self.actor.weight)
        nn.init.zeros_(self.actor.bias)

    def first_state(self, pupils: int) -> State:
        zeros = torch.zeros(1, pupils, self.memory.hidden_size, device=self.latents.device)
        return zeros, zeros.clone()

    def forward(self, observations: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """Log probabilities [steps, pupils, actions], values [steps, pupils] and the state after observations
        [steps, pupils, tokens, 3]."""
        steps, pupils = observations.shape[:2]
        near = observations[:, :, : self.tokens].flatten(0, 1)
        there = near[..., 0] != NOTHING
        tokens = self.norm(self.embed(written(near)))
        keys, values = split(self.keys(tokens), self.heads), split(self.values(tokens), self.heads)
        latents = self.latents + self.bid(near[:, :OWN, 2].float())[:, None]  # what is relevant depends on the load
        for layer in self.layers:
            latents = layer(latents, keys, values, there)
        seen = gelu(self.gather(latents.flatten(1))).view(steps, pupils, -1)
        with torch.autocast(seen.device.type, enabled=False):  # not every processor has an LSTM in bfloat16
            seen = seen.float()
            remembered, state = self.memory(seen, state)
            seen = seen + remembered
        # PPO compares probabilities that differ by less than bfloat16 can represent.
        return self.actor(seen).float().log_softmax(-1), self.critic(seen).float().squeeze(-1), state


def split(vectors: Tensor, heads: int) -> Tensor:
    """Reshape [n, m, width] to [n, heads, m, width of a head]."""
    return vectors.view(*vectors.shape[:2], heads, -1).transpose(1, 2)


def written(tokens: Tensor) -> Tensor:
    """Encode tokens [..., 3] as numbers [..., _WRITTEN]: value and place, in separate columns per feature."""
    location, feature, value = tokens.long().unbind(-1)
    place = (torch.stack((location >> 4, location & 15), -1) - RADIUS) / RADIUS
    near = (place * (torch.pi / 2)).cos()
    described = torch.cat((torch.ones_like(place[..., :1]), value[..., None] / 4, place, place.sign(), near), -1)
    kind = one_hot(feature.clamp(max=FEATURES - 1), FEATURES)  # NOTHING is masked out
    return (kind[..., None] * described[..., None, :]).flatten(-2)


def precision(settings: DistillSettings, device: torch.device) -> torch.autocast:
    """Context for a forward pass: autocast if mixed precision is on."""
    return torch.autocast(device.type, torch.bfloat16, enabled=settings.trainer.mixed_precision)
