"""PPO on CartPole in one file, in the style of CleanRL: a loop and a network, without a framework."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from parts import Adam, Env, Network, Stamped
from planted import arguments, planted, stamped, tell
from torch import nn
from torch.distributions.categorical import Categorical
from turns import turn

EPOCHS, MINIBATCHES = 4, 4


class Envs(gym.vector.SyncVectorEnv):
    def step(self, actions: Any) -> Any:
        with stamped("env"):
            return super().step(actions)


class Actor(Stamped, Network):
    pass


class Critic(Stamped, nn.Sequential):
    pass


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.critic = Critic(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        self.actor = Actor(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))

    def get_value(self, x: Any) -> Any:
        return self.critic(x)

    def get_action_and_value(self, x: Any, action: Any = None) -> Any:
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    make = lambda: RecordEpisodeStatistics(TimeLimit(Env(), 500))  # noqa: E731 - common in trainings
    envs = Envs([make for _ in range(options.envs)])
    agent = Agent()
    optimizer = Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    shape = (options.steps, options.envs)
    obs = torch.zeros((*shape, 4))
    actions, logprobs, rewards, dones, values = (torch.zeros(shape) for _ in range(5))
    next_obs = torch.Tensor(envs.reset(seed=options.seed)[0])
    next_done = torch.zeros(options.envs)
    batch_size = options.steps * options.envs
    for _ in range(options.iterations):
        turn()
        for step in range(options.steps):
            obs[step] = next_obs
            dones[step] = next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
                values[step] = value.flatten()
            actions[step] = action
            logprobs[step] = logprob
            observation, reward, terminations, truncations, _ = envs.step(action.cpu().numpy())
            rewards[step] = torch.tensor(reward)
            next_obs = torch.Tensor(observation)
            next_done = torch.Tensor(np.logical_or(terminations, truncations))
        with torch.no_grad(), stamped("advantage"):
            next_value = agent.get_value(next_obs).reshape(1, -1)
            advantages = torch.zeros_like(rewards)
            last = 0
            for t in reversed(range(options.steps)):
                planted("advantage")
                if t == options.steps - 1:
                    alive, following = 1.0 - next_done, next_value
                else:
                    alive, following = 1.0 - dones[t + 1], values[t + 1]
                delta = rewards[t] + 0.99 * following * alive - values[t]
                advantages[t] = last = delta + 0.99 * 0.95 * alive * last
            returns = advantages + values
        b_obs, b_actions = obs.reshape(-1, 4), actions.reshape(-1)
        b_logprobs, b_advantages, b_returns = logprobs.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
        indices = np.arange(batch_size)
        for _ in range(EPOCHS):
            np.random.shuffle(indices)
            for start in range(0, batch_size, batch_size // MINIBATCHES):
                batch = indices[start : start + batch_size // MINIBATCHES]
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[batch], b_actions.long()[batch])
                ratio = (newlogprob - b_logprobs[batch]).exp()
                advantage = b_advantages[batch]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                policy_loss = torch.max(-advantage * ratio, -advantage * torch.clamp(ratio, 0.8, 1.2)).mean()
                value_loss = 0.5 * ((newvalue.view(-1) - b_returns[batch]) ** 2).mean()
                loss = policy_loss - 0.01 * entropy.mean() + 0.5 * value_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
    turn()
    tell()


if __name__ == "__main__":
    main()
