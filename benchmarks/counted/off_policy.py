"""A handwritten DQN or, with --sac, an actor and a critic. Random actions fill its buffer first. It updates every four
steps, and evaluates now and then."""

from __future__ import annotations

import random
import sys

import numpy as np
import own
import torch
from parts import ContinuousEnv, Env, descend, evaluate, network

PREFILL, STEPS, EVERY, EVALUATED_EVERY = 2000, 1600, 4, 400
SAC = "--sac" in sys.argv


def main() -> None:
    env, test = (ContinuousEnv(), ContinuousEnv()) if SAC else (Env(), Env())
    actor = network(4, 1 if SAC else 2)
    critic = network(5 if SAC else 4, 1 if SAC else 2)
    actor_optimizer, critic_optimizer = (torch.optim.Adam(net.parameters(), 1e-3) for net in (actor, critic))
    buffer: list[tuple[np.ndarray, np.ndarray, float, np.ndarray]] = []

    def act(observation: np.ndarray) -> np.ndarray | int:
        with torch.no_grad():
            if SAC:
                return torch.tanh(actor(torch.from_numpy(observation)[None]))[0].numpy()
            return int(critic(torch.from_numpy(observation)[None]).argmax())

    def learn() -> None:
        rows = random.sample(buffer, 64)
        observations, actions, rewards, following = (torch.as_tensor(np.array(column)) for column in zip(*rows))
        if SAC:
            with torch.no_grad():
                aim = rewards.float() + 0.99 * critic(torch.cat([following, torch.tanh(actor(following))], 1))[:, 0]
            loss = (critic(torch.cat([observations, actions], 1))[:, 0] - aim).pow(2).mean()
        else:
            with torch.no_grad():
                aim = rewards.float() + 0.99 * critic(following).max(1).values
            loss = (critic(observations).gather(1, actions[:, None])[:, 0] - aim).pow(2).mean()
        descend(critic_optimizer, loss)
        if SAC:
            descend(actor_optimizer, -critic(torch.cat([observations, torch.tanh(actor(observations))], 1)).mean())

    observation, _ = env.reset(seed=1)
    for step in range(PREFILL + STEPS):
        if step == PREFILL:
            own.resume()
        action = env.action_space.sample() if step < PREFILL or random.random() < 0.05 else act(observation)
        following, reward, terminated, truncated, _ = env.step(action)
        buffer.append((observation, action, reward, following))
        observation = env.reset()[0] if terminated or truncated else following
        if step >= PREFILL:
            own.steps += 1
            if step % EVERY == EVERY - 1:
                learn()
                own.iterations += 1
            if step % EVALUATED_EVERY == EVALUATED_EVERY - 1:
                with own.paused():
                    evaluate(test, act, 3)
    own.write()


if __name__ == "__main__":
    main()
