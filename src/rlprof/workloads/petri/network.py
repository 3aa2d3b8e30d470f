"""The policy, which takes only actions that the mask allows, and the value network."""

from __future__ import annotations

from itertools import pairwise

import torch
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator

from rlprof.workloads.petri import rules
from rlprof.workloads.petri.settings import PetriSettings

POLICY_LAYERS, VALUE_LAYERS = 4, 3


class _Scaled(nn.Module):
    """Scale whole numbers of very different sizes to fractions of their largest values."""

    def __init__(self) -> None:
        super().__init__()
        longest = max(rules.PROCESSING_SECONDS)
        largest = torch.tensor([rules.WAFERS, len(rules.PLACES), rules.MUST_LEAVE, longest, longest])
        self.scale: Tensor
        self.register_buffer("scale", 1 / largest.repeat(rules.WAFERS))

    def forward(self, observation: Tensor) -> Tensor:
        return (observation * self.scale).clamp(-1, 2)


def _mlp(layers: int, hidden: int, outputs: int) -> nn.Sequential:
    sizes = [rules.OBSERVATION, *[hidden] * layers]
    inner = [module for pair in pairwise(sizes) for module in (nn.Linear(*pair), nn.Tanh())]
    return nn.Sequential(_Scaled(), *inner, nn.Linear(hidden, outputs))


def make_policy(settings: PetriSettings) -> ProbabilisticActor:
    network = _mlp(POLICY_LAYERS, settings.hidden, rules.ACTIONS).to(settings.device)
    return ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["logits"]),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )


def make_value(settings: PetriSettings) -> ValueOperator:
    return ValueOperator(_mlp(VALUE_LAYERS, settings.hidden, 1).to(settings.device), in_keys=["observation"])
