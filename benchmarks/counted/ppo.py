"""A handwritten PPO on vectorized environments, evaluated every third iteration and at the end."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import own
import torch
from own import computes_and_sleeps
from parts import Env, descend, evaluate, network

ENVS, STEPS, ITERATIONS = 4, 64, 12


def main() -> None:
    envs = gym.vector.SyncVectorEnv([Env] * ENVS)
    test = Env()
    actor, critic = network(4, 2), network(4, 1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 1e-3)

    def act(observation: np.ndarray) -> int:
        with torch.no_grad():
            return int(actor(torch.from_numpy(observation)[None]).argmax())

    observation, _ = envs.reset(seed=1)
    own.resume()
    for iteration in range(ITERATIONS):
        with own.phase("rollout"):
            seen, taken, rewards, values = [], [], [], []
            for _ in range(STEPS):
                tensor = torch.from_numpy(observation)
                with torch.no_grad():
                    action = torch.distributions.Categorical(logits=actor(tensor)).sample()
                    values.append(critic(tensor)[:, 0])
                seen.append(tensor)
                taken.append(action)
                observation, reward, *_ = envs.step(action.numpy())
                rewards.append(torch.from_numpy(reward).float())
                own.steps += ENVS
        with own.phase("advantage"):
            computes_and_sleeps(0.02, 0.06)
            advantages, last = [], torch.zeros(ENVS)
            for reward_, value in zip(reversed(rewards), reversed(values)):
                last = reward_ - value + 0.95 * last
                advantages.append(last)
            flat = torch.cat(advantages[::-1])
        with own.phase("update"):
            every, chosen = torch.cat(seen), torch.cat(taken)
            for _ in range(4):
                for batch in torch.randperm(len(every)).split(64):
                    logits = actor(every[batch])
                    policy = -(torch.log_softmax(logits, 1).gather(1, chosen[batch, None])[:, 0] * flat[batch]).mean()
                    loss = policy + (critic(every[batch])[:, 0] - flat[batch]).pow(2).mean()
                    descend(optimizer, loss)
        own.iterations += 1
        if iteration % 3 == 2:
            with own.paused():
                evaluate(test, act, 5)
    own.pause()
    evaluate(test, act, 10)
    own.write()


if __name__ == "__main__":
    main()
