"""REINFORCE for a robot with range sensors and a compiled loss. Its batches are whole episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import stopwatch
import torch
from ppo import mlp
from torch.distributions import Categorical
from worlds import Lidar

EPISODES, BEAMS = 16, 64


def main() -> None:
    options = stopwatch.arguments(32, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    torch._dynamo.config.recompile_limit = 256
    env = Lidar(BEAMS)
    policy = mlp(BEAMS, 3)
    optimizer = torch.optim.Adam(policy.parameters(), 1e-3)

    def loss_of(seen: Any, actions: Any, returns: Any) -> Any:
        logprobs = torch.log_softmax(policy(seen), -1).gather(1, actions[:, None])[:, 0]
        return -(logprobs * (returns - returns.mean())).mean()

    compiled = torch.compile(loss_of, backend="aot_eager", dynamic=options.fix)
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
        with stopwatch.section():
            loss = compiled(torch.stack(seen), torch.stack(actions), returns)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        stopwatch.iteration(len(rewards))
    stopwatch.write()


if __name__ == "__main__":
    main()
