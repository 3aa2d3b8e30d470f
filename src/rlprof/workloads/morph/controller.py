"""The controller: a recurrent network that observes hosts and chooses actions, and its update with PPO."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rlprof import profile, profile_function
from rlprof.workloads.morph.environment import HEADS, OBSERVATION
from rlprof.workloads.morph.settings import ControllerSettings

State = tuple[Tensor, Tensor]


class Controller(nn.Module):
    """The network. In sequences the first dimension is time, the second one environments."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(OBSERVATION, hidden), nn.LayerNorm(hidden), nn.ReLU())
        self.memory = nn.LSTM(hidden, hidden)
        self.heads = nn.Linear(hidden, sum(HEADS))
        self.critic = nn.Linear(hidden, 1)
        nn.init.orthogonal_(self.heads.weight, 0.01)  # nearly uniform at first
        nn.init.zeros_(self.heads.bias)

    def forward(self, observations: Tensor, state: State | None = None) -> tuple[list[Tensor], Tensor, State]:
        """Log-probabilities of each head's choices, values, and the next state."""
        remembered, state = self.memory(self.encoder(observations), state)
        heads = [logits.log_softmax(-1) for logits in self.heads(remembered).split(HEADS, -1)]
        return heads, self.critic(remembered).squeeze(-1), state


def log_prob(heads: list[Tensor], actions: Tensor) -> Tensor:
    """Log-probability of whole actions, whose parts are independent."""
    chosen = [head.gather(-1, part[..., None]).squeeze(-1) for head, part in zip(heads, actions.unbind(-1))]
    return torch.stack(chosen).sum(0)


@dataclass
class Rollout:
    """A round: tensors of epochs x environments. All episodes begin and end with the round."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    rewards: Tensor

    @classmethod
    def empty(cls, length: int, envs: int, device: torch.device) -> Rollout:
        return cls(
            torch.zeros(length, envs, OBSERVATION, device=device),
            torch.zeros(length, envs, len(HEADS), dtype=torch.int64, device=device),
            *(torch.zeros(length, envs, device=device) for _ in range(3)),
        )


@profile_function("advantage")
def advantages_of(rollout: Rollout, settings: ControllerSettings) -> Tensor:
    """Generalised advantage estimation. Nothing follows the last epoch."""
    advantages = torch.zeros_like(rollout.rewards)
    advantage = next_value = torch.zeros_like(rollout.rewards[0])
    for epoch in reversed(range(len(advantages))):
        delta = rollout.rewards[epoch] + settings.gamma * next_value - rollout.values[epoch]
        advantage = delta + settings.gamma * settings.gae_lambda * advantage
        advantages[epoch] = advantage
        next_value = rollout.values[epoch]
    return advantages


@profile_function("update")
def update(
    controller: Controller, optimizer: torch.optim.Optimizer, rollout: Rollout, settings: ControllerSettings
) -> float:
    """Learn from whole sequences in several passes over the round. Returns the loss of the last pass."""
    advantages = advantages_of(rollout, settings)
    with profile("batch_preparation"):
        returns = advantages + rollout.values
        advantages = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
    for _ in range(settings.passes):
        with profile("evaluate_actions"):
            heads, values, _ = controller(rollout.observations)
            ratio = (log_prob(heads, rollout.actions) - rollout.log_probs).exp()
        with profile("loss"):
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
            value_loss = (values - returns).square().mean()
            entropy = -torch.stack([(head.exp() * head).sum(-1) for head in heads]).sum(0).mean()
            loss = policy_loss + 0.5 * value_loss - settings.entropy * entropy
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(controller.parameters(), settings.max_gradient)
        optimizer.step()
    return float(loss.detach())
