"""PPO on CartPole with a mistake that is easy to make. Run it under rlprof to see what rlprof says about it:

    rlprof run examples/slow_ppo.py
    rlprof report

`--fixed` runs it without the mistake.
"""

# torch has no types for distributions.
# mypy: allow-untyped-calls

from __future__ import annotations

import argparse

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

ENVS, STEPS, EPOCHS, MINIBATCH = 8, 256, 4, 128


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))


class Rollout:
    """What the environments returned, one entry per step."""

    def __init__(self, fixed: bool) -> None:
        self.fixed = fixed
        self.obs: list[np.ndarray] = []
        self.actions: list[np.ndarray] = []
        self.logprobs: list[np.ndarray] = []
        self.returns = np.zeros(0, np.float32)
        self._whole: tuple[torch.Tensor, ...] | None = None

    def minibatch(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self.fixed and self._whole is not None:
            return tuple(tensor[rows] for tensor in self._whole)
        obs = torch.tensor([row.tolist() for step in self.obs for row in step])
        actions = torch.as_tensor(np.concatenate(self.actions))
        logprobs = torch.as_tensor(np.concatenate(self.logprobs))
        self._whole = obs, actions, logprobs, torch.as_tensor(self.returns)
        return tuple(tensor[rows] for tensor in self._whole)


def discounted(rewards: np.ndarray, dones: np.ndarray, gamma: float = 0.99) -> np.ndarray:
    returns, following = np.zeros_like(rewards), np.zeros(rewards.shape[1], np.float32)
    for step in reversed(range(len(rewards))):
        following = rewards[step] + gamma * following * (1 - dones[step])
        returns[step] = following
    return returns.reshape(-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--fixed", action="store_true", help="without the mistake")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    envs = gymnasium.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    actor, critic = mlp(4, 2), mlp(4, 1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 1e-3)
    obs, _ = envs.reset(seed=1)
    for _ in range(options.iterations):
        rollout, rewards, dones = Rollout(options.fixed), [], []
        for _ in range(STEPS):
            with torch.no_grad():
                chosen = Categorical(logits=actor(torch.as_tensor(obs)))
                action = chosen.sample()
            rollout.obs.append(obs)
            rollout.actions.append(action.numpy())
            rollout.logprobs.append(chosen.log_prob(action).numpy())
            obs, reward, terminated, truncated, _ = envs.step(action.numpy())
            rewards.append(reward.astype(np.float32))
            dones.append((terminated | truncated).astype(np.float32))
        rollout.returns = discounted(np.stack(rewards), np.stack(dones))
        for _ in range(EPOCHS):
            for rows in torch.randperm(ENVS * STEPS).split(MINIBATCH):
                seen, actions, logprobs, returns = rollout.minibatch(rows)
                values = critic(seen).squeeze(-1)
                advantages = returns - values.detach()
                ratio = (Categorical(logits=actor(seen)).log_prob(actions) - logprobs).exp()
                clipped = ratio.clamp(0.8, 1.2) * advantages
                loss = -torch.min(ratio * advantages, clipped).mean() + 0.5 * (returns - values).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    envs.close()


if __name__ == "__main__":
    main()
