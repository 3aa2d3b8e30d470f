"""REINFORCE for a robot with range sensors. All losses are kept for a plot."""

from __future__ import annotations

import numpy as np
import stopwatch
import torch
from ppo import mlp
from torch.distributions import Categorical
from worlds import Lidar

EPISODES, BEAMS = 4, 1440


def main() -> None:
    options = stopwatch.arguments(135, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    env = Lidar(BEAMS)
    policy = mlp(BEAMS, 3, hidden=512)
    optimizer = torch.optim.Adam(policy.parameters(), 1e-3)
    losses = []
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        seen, actions, rewards = [], [], []
        for _ in range(EPISODES):
            done = False
            while not done:
                with torch.no_grad():
                    action = Categorical(logits=policy(torch.from_numpy(obs))).sample()
                seen.append(torch.from_numpy(obs))
                actions.append(action)
                obs, reward, terminated, truncated, _ = env.step(action)
                rewards.append(reward)
                done = terminated or truncated
            obs, _ = env.reset()
        returns = torch.from_numpy(np.cumsum(rewards[::-1])[::-1].copy()).float()
        logprobs = Categorical(logits=policy(torch.stack(seen))).log_prob(torch.stack(actions))
        loss = -(logprobs * returns).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=not options.fix)
        optimizer.step()
        losses.append(loss.item() if options.fix else loss)
        stopwatch.iteration(len(rewards))
    stopwatch.write()


if __name__ == "__main__":
    main()
