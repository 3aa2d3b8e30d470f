"""PPO on CartPole-v1 in one file, profiled with rlprof.

python examples/cartpole_ppo.py --iterations 100
python examples/cartpole_ppo.py --no-profile      # the same weights, bit for bit
"""

from __future__ import annotations

import argparse
import zlib
from collections import deque
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from torch import Tensor, nn

import rlprof
from rlprof import profile

Envs = VectorEnv[Any, Any, Any]


@dataclass
class Args:
    seed: int = 1
    """Seed of environments, weights and sampling."""
    envs: int = 8
    """Environments that are stepped together."""
    iterations: int = 100
    """Rounds of collecting and updating."""
    steps: int = 128
    """Steps per environment and iteration."""
    epochs: int = 4
    """Passes over the collected steps per iteration."""
    minibatches: int = 4
    """Gradient steps per pass."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""
    gamma: float = 0.99
    """Discount of the reward."""
    gae_lambda: float = 0.95
    """Decay of the generalised advantage estimation."""
    clip: float = 0.2
    """How far a probability ratio may be from 1 before it is clipped."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""
    max_gradient: float = 0.5
    """Norm to which gradients are clipped."""
    summary_every: int = 0
    """Iterations between two short tables of the time spent. 0: none."""
    profile: bool = True
    """Record the training to a session and print where its time went."""


class Agent(nn.Module):
    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()
        self.actor = _network(observations, actions, last_gain=0.01)
        self.critic = _network(observations, 1, last_gain=1.0)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        return self.actor(observation), self.critic(observation).squeeze(-1)


def _network(inputs: int, outputs: int, last_gain: float) -> nn.Sequential:
    layers = [nn.Linear(inputs, 64), nn.Linear(64, 64), nn.Linear(64, outputs)]
    for layer, gain in zip(layers, (2**0.5, 2**0.5, last_gain)):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


class Rollout:
    """State of the environments, and the data of an iteration: tensors of steps x environments."""

    def __init__(self, steps: int, first_observation: Tensor) -> None:
        envs, observations = first_observation.shape
        self.observation = first_observation
        self.return_so_far = torch.zeros(envs)
        self.observations = torch.zeros(steps, envs, observations)
        self.actions = torch.zeros(steps, envs, dtype=torch.int64)
        self.log_probs = torch.zeros(steps, envs)
        self.values = torch.zeros(steps, envs)
        self.rewards = torch.zeros(steps, envs)
        self.dones = torch.zeros(steps, envs, dtype=torch.bool)


@rlprof.profile_function("advantage")
def advantages_of(rollout: Rollout, next_value: Tensor, args: Args) -> Tensor:
    """Generalised advantage estimation, backwards in time."""
    advantages = torch.zeros_like(rollout.rewards)
    advantage = torch.zeros_like(next_value)
    for step in reversed(range(args.steps)):
        alive = ~rollout.dones[step]
        delta = rollout.rewards[step] + args.gamma * alive * next_value - rollout.values[step]
        advantage = delta + args.gamma * args.gae_lambda * alive * advantage
        advantages[step] = advantage
        next_value = rollout.values[step]
    return advantages


def collect(envs: Envs, agent: Agent, rollout: Rollout, args: Args) -> list[float]:
    """Fill the rollout. Returns the returns of the ended episodes."""
    finished: list[float] = []
    for step in range(args.steps):
        with profile("policy_forward"), torch.no_grad():
            logits, value = agent(rollout.observation)
            log_probs = logits.log_softmax(-1)
        with profile("action_sampling"):
            action = torch.multinomial(log_probs.exp(), 1)
        with profile("env_step"):
            observation, reward, terminated, truncated, info = envs.step(action.squeeze(-1).numpy())
        with profile("buffer_add"):
            done = torch.from_numpy(terminated | truncated)
            rollout.observations[step] = rollout.observation
            rollout.actions[step] = action.squeeze(-1)
            rollout.log_probs[step] = log_probs.gather(-1, action).squeeze(-1)
            rollout.values[step] = value
            rollout.rewards[step] = torch.from_numpy(reward)
            rollout.dones[step] = done
            rollout.return_so_far += rollout.rewards[step]
            ended = rollout.return_so_far[done].tolist()
            finished += ended
            rollout.return_so_far[done] = 0
            rollout.observation = torch.from_numpy(observation)
        rlprof.add_steps(len(done))
        rlprof.add_episodes(len(ended))
        if truncated.any():  # cut off while the pole still stood, so the critic estimates the rest
            with profile("value_estimation"), torch.no_grad():
                last = torch.from_numpy(np.stack(list(info["final_obs"][truncated])))
                rollout.rewards[step, torch.from_numpy(truncated)] += args.gamma * agent(last)[1]
    return finished


@rlprof.profile_function("update")
def update(agent: Agent, optimizer: torch.optim.Optimizer, rollout: Rollout, advantages: Tensor, args: Args) -> None:
    """Several passes of clipped policy-gradient steps over the rollout."""
    with profile("buffer_get"):
        observations = rollout.observations.flatten(0, 1)
        actions = rollout.actions.flatten()
        log_probs = rollout.log_probs.flatten()
        returns = (advantages + rollout.values).flatten()
        advantages = advantages.flatten()
    for _ in range(args.epochs):
        for batch in torch.randperm(len(actions)).chunk(args.minibatches):
            with profile("buffer_sample"):
                advantage = advantages[batch]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            with profile("evaluate_actions"):
                logits, value = agent(observations[batch])
                new = logits.log_softmax(-1)
                ratio = (new.gather(-1, actions[batch, None]).squeeze(-1) - log_probs[batch]).exp()
            with profile("loss"):
                clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
                policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
                value_loss = (value - returns[batch]).square().mean()
                entropy = -(new.exp() * new).sum(-1).mean()
                loss = policy_loss + 0.5 * value_loss - args.entropy * entropy
            with profile("zero_grad"):
                optimizer.zero_grad()
            with profile("backward"):
                loss.backward()
            with profile("gradient_clip"):
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_gradient)
            with profile("optimizer_step"):
                optimizer.step()


def train(args: Args) -> tuple[Agent, rlprof.Recording | None]:
    """Train, and print the mean returns."""
    torch.manual_seed(args.seed)
    envs: Envs = SyncVectorEnv(
        [lambda: gym.make("CartPole-v1") for _ in range(args.envs)], autoreset_mode=AutoresetMode.SAME_STEP
    )
    agent = Agent(observations=4, actions=2)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    recent: deque[float] = deque(maxlen=100)

    recording = None
    if args.profile:
        recording = rlprof.record("cartpole_ppo", summary_every=args.summary_every, settings=vars(args))
    with profile("env_reset"):
        rollout = Rollout(args.steps, torch.from_numpy(envs.reset(seed=args.seed)[0]))
    for iteration in range(1, args.iterations + 1):
        with rlprof.iteration():
            recent += collect(envs, agent, rollout, args)
            with profile("value_estimation"), torch.no_grad():
                next_value = agent(rollout.observation)[1]
            update(agent, optimizer, rollout, advantages_of(rollout, next_value, args), args)
            with profile("logging"):
                if iteration in (1, args.iterations) or iteration % 10 == 0:
                    mean = sum(recent) / max(1, len(recent))
                    print(f"iteration {iteration:4d}   mean return {mean:6.1f}", flush=True)
    with profile("env_close"):
        envs.close()
    if recording is not None:
        recording.stop()
    return agent, recording


def print_accounts(folder: Path) -> None:
    """Print where the time went. The accounts sum to the wall time."""
    with rlprof.open_session(folder) as session:
        accounts = sorted(session.accounts(), key=lambda account: account.ledger_ns, reverse=True)
        whole = sum(account.ledger_ns for account in accounts)
        print(f"{'operation':20}{'calls':>10}{'seconds':>10}{'share':>9}")
        for account in accounts:
            seconds, share = account.ledger_ns / 1e9, account.ledger_ns / whole
            print(f"{account.operation:20}{account.calls:10,}{seconds:10.3f}{share:9.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO on CartPole-v1, profiled with rlprof.")
    for field in fields(Args):
        if field.name == "profile":
            parser.add_argument("--profile", action=argparse.BooleanOptionalAction, default=field.default)
        else:
            parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    args = Args(**vars(parser.parse_args()))
    torch.set_num_threads(1)  # more threads make networks this small slower
    agent, recording = train(args)
    weights = b"".join(parameter.detach().numpy().tobytes() for parameter in agent.parameters())
    print(f"checksum of the weights {zlib.crc32(weights):08x}\n")
    if recording is not None and recording.folder is not None:
        print_accounts(recording.folder)
        print(f"\nThe session: {recording.folder.name}")
        print("The whole report: rlprof report last")


if __name__ == "__main__":
    main()
