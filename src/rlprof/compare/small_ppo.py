"""A PPO in NumPy on many poles on carts, for `rlprof compare --noise`, which starts hundreds of processes.

--slower NAME=SHARE does the work of a part twice in this share of its calls: a real change of known size in one place.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from rlprof.ledger.profiler import get_profiler

profile = get_profiler().profile

EPOCHS, MINIBATCHES, HIDDEN = 2, 4, 64
PARTS = ("env_step", "policy_forward", "advantage", "loss_forward", "backward", "optimizer_step")


class Again:
    """Calls a part once, and twice in a share of its calls."""

    def __init__(self, shares: dict[str, float]) -> None:
        self._shares = shares
        self._due = dict.fromkeys(PARTS, 0.0)

    def __call__(self, name: str, part: Callable[..., Any], *arguments: Any) -> Any:
        with profile(name):
            self._due[name] += self._shares.get(name, 0.0)
            if self._due[name] >= 1:
                self._due[name] -= 1
                part(*arguments)
            return part(*arguments)


def step(state: Any, action: Any) -> Any:
    """Cart and pole, as in Barto, Sutton and Anderson (1983): the new state, and which poles have fallen."""
    x, v, angle, spin = state.T
    force = np.where(action == 1, 10.0, -10.0)
    sine, cosine = np.sin(angle), np.cos(angle)
    push = (force + 0.05 * spin**2 * sine) / 1.1
    turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    moved = np.stack(
        [x + 0.02 * v, v + 0.02 * (push - 0.05 * turn * cosine / 1.1), angle + 0.02 * spin, spin + 0.02 * turn], 1
    )
    return moved, (np.abs(moved[:, 0]) > 2.4) | (np.abs(moved[:, 2]) > 0.21)


def forward(weights: list[Any], state: Any) -> Any:
    hidden = np.tanh(state @ weights[0])
    logits, value = hidden @ weights[1], (hidden @ weights[2])[:, 0]
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return hidden, shifted / shifted.sum(1, keepdims=True), value


def advantages(rewards: Any, values: Any, fallen: Any) -> Any:
    found, last = np.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        alive = 1.0 - fallen[t]
        last = rewards[t] + 0.99 * alive * values[t + 1] - values[t] + 0.99 * 0.95 * alive * last
        found[t] = last
    return found


def gradient_of_loss(
    chosen: Any, before: Any, advantage: Any, probabilities: Any, action: Any, value: Any, target: Any
) -> Any:
    """Gradient of the clipped objective with respect to logits and value."""
    ratio = chosen / before
    clipped = ((ratio > 1.2) & (advantage > 0)) | ((ratio < 0.8) & (advantage < 0))
    weight = np.where(clipped, 0.0, -advantage * ratio) / len(action)
    by_logits = weight[:, None] * (np.eye(2)[action] - probabilities)
    return by_logits, (value - target) / len(action)


def backward(weights: list[Any], state: Any, hidden: Any, by_logits: Any, by_value: Any) -> list[Any]:
    by_hidden = by_logits @ weights[1].T + by_value[:, None] @ weights[2].T
    by_input = by_hidden * (1 - hidden**2)
    return [state.T @ by_input, hidden.T @ by_logits, hidden.T @ by_value[:, None]]


def adam(weights: list[Any], gradients: list[Any], moments: list[Any]) -> None:
    for weight, gradient, moment in zip(weights, gradients, moments):
        moment[0] = 0.9 * moment[0] + 0.1 * gradient
        moment[1] = 0.999 * moment[1] + 0.001 * gradient**2
        weight[:] -= 3e-4 * moment[0] / (np.sqrt(moment[1]) + 1e-8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=10**6)
    parser.add_argument("--slower", action="append", default=[], metavar="NAME=SHARE")
    options = parser.parse_args()
    shares = {name: float(share) for name, _, share in (text.partition("=") for text in options.slower)}
    assert set(shares) <= set(PARTS), f"parts are {', '.join(PARTS)}"
    call, chance, profiler = Again(shares), np.random.default_rng(1), get_profiler()
    weights = [chance.normal(0, 0.3, shape) for shape in ((4, HIDDEN), (HIDDEN, 2), (HIDDEN, 1))]
    moments = [[np.zeros_like(weight), np.zeros_like(weight)] for weight in weights]
    shape = (options.steps, options.envs)
    state = chance.uniform(-0.05, 0.05, (options.envs, 4))
    for _ in range(options.iterations):
        profiler.iteration()
        states, actions, before = np.zeros((*shape, 4)), np.zeros(shape, int), np.zeros(shape)
        values, fallen = np.zeros((options.steps + 1, options.envs)), np.zeros(shape)
        with profile("rollout"):
            for t in range(options.steps):
                _, probabilities, values[t] = call("policy_forward", forward, weights, state)
                states[t], actions[t] = state, chance.random(options.envs) < probabilities[:, 1]
                before[t] = probabilities[np.arange(options.envs), actions[t]]
                state, fallen[t] = call("env_step", step, state, actions[t])
                down = fallen[t] > 0
                state[down] = chance.uniform(-0.05, 0.05, (int(down.sum()), 4))
                profiler.add_steps(options.envs)
            values[-1] = forward(weights, state)[2]
        advantage = call("advantage", advantages, np.ones(shape), values, fallen)
        targets = advantage + values[:-1]
        with profile("update"):
            for _ in range(EPOCHS):
                for batch in np.array_split(chance.permutation(states[..., 0].size), MINIBATCHES):
                    seen, action = states.reshape(-1, 4)[batch], actions.reshape(-1)[batch]
                    hidden, probabilities, value = call("loss_forward", forward, weights, seen)
                    by_logits, by_value = gradient_of_loss(
                        probabilities[np.arange(len(batch)), action], before.reshape(-1)[batch],
                        advantage.reshape(-1)[batch], probabilities, action, value, targets.reshape(-1)[batch],
                    )  # fmt: skip
                    gradients = call("backward", backward, weights, seen, hidden, by_logits, by_value)
                    call("optimizer_step", adam, weights, gradients, moments)


if __name__ == "__main__":
    main()
