"""A handwritten PPO on EnvPool, which runs its environments in C++ threads."""

from __future__ import annotations

import envpool
import numpy as np
import own
import torch
from parts import descend, network, returns_of

ENVS, STEPS, ITERATIONS = 8, 128, 20


def main() -> None:
    envs = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=ENVS, num_threads=1, seed=1)
    actor, critic = network(4, 2), network(4, 1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 1e-3)
    observation, _ = envs.reset()
    own.resume()
    for _ in range(ITERATIONS):
        seen, taken, rewards = [], [], []
        for _ in range(STEPS):
            tensor = torch.from_numpy(np.asarray(observation, np.float32))
            with torch.no_grad():
                action = torch.distributions.Categorical(logits=actor(tensor)).sample()
            seen.append(tensor)
            taken.append(action)
            observation, reward, *_ = envs.step(action.numpy().astype(np.int32))
            rewards.append(torch.from_numpy(np.asarray(reward, np.float32)))
            own.steps += ENVS
        every, chosen, aim = torch.cat(seen), torch.cat(taken), torch.cat(returns_of(rewards))
        for _ in range(4):
            for batch in torch.randperm(len(every)).split(256):
                value = critic(every[batch])[:, 0]
                logs = torch.log_softmax(actor(every[batch]), 1).gather(1, chosen[batch, None])[:, 0]
                loss = -(logs * (aim[batch] - value.detach())).mean() + (value - aim[batch]).pow(2).mean()
                descend(optimizer, loss)
        own.iterations += 1
    own.write()


if __name__ == "__main__":
    main()
