"""Learning from a rollout: imitation while there is a teacher, then PPO. The value function learns in both."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rlprof import profile, profile_function
from rlprof.workloads.distill.policy import Student, precision
from rlprof.workloads.distill.rollout import Rollout
from rlprof.workloads.distill.settings import DistillSettings

MAX_GRADIENT = 1.0
VALUE_WEIGHT = 0.5


class Learner:
    def __init__(self, settings: DistillSettings, student: Student, device: torch.device) -> None:
        self.settings = settings
        self.student = student
        self.device = device
        self.optimizer = torch.optim.Adam(student.parameters(), lr=settings.learning_rate, eps=1e-5)

    def learn(self, rollout: Rollout, supervised: bool) -> None:
        self._update(rollout, self._advantages(rollout), supervised)

    def _advantages(self, rollout: Rollout) -> Tensor:
        """Generalised advantage estimation.

        An episode does not end where a world is replaced by a new one, so the value of its continuation is estimated.
        """
        gamma, decay = self.settings.gamma, self.settings.gamma * self.settings.gae_lambda
        with profile("value_forward"), torch.no_grad(), precision(self.settings, self.device):
            _, next_values, _ = self.student(rollout.after[None], rollout.after_state)
        with profile("advantage"):
            values = torch.cat((rollout.steps.values, next_values))
            deltas = rollout.steps.rewards + gamma * values[1:] - values[:-1]
            advantages = torch.empty_like(deltas)
            advantage = torch.zeros_like(deltas[0])
            for step in reversed(range(len(deltas))):
                advantage = deltas[step] + decay * advantage
                advantages[step] = advantage
        return advantages

    @profile_function("update")
    def _update(self, rollout: Rollout, advantages: Tensor, supervised: bool) -> None:
        settings, steps = self.settings, rollout.steps
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate if supervised else settings.ppo_learning_rate
        for _ in range(settings.epochs):
            for chosen in torch.split(torch.randperm(settings.pupils), settings.trainer.batch_size // settings.bptt):
                with profile("buffer_sample"):
                    pupils = chosen.to(self.device)
                    observations = steps.observations[:, pupils]
                    state = rollout.state[0][:, pupils], rollout.state[1][:, pupils]
                    advantage = advantages[:, pupils]
                    returns = advantage + steps.values[:, pupils]
                with profile("evaluate_actions"), precision(settings, self.device):
                    log_probs, values, _ = self.student(observations, state)
                with profile("loss"):
                    value_loss = (values - returns).square().mean()
                    if supervised:  # negative log-likelihood of the teacher's actions
                        policy_loss = -_of(log_probs, steps.taught[:, pupils]).mean()
                    else:
                        before = steps.log_probs[:, pupils]
                        policy_loss = self._ppo_loss(log_probs, steps.actions[:, pupils], before, advantage)
                    loss = policy_loss + VALUE_WEIGHT * value_loss
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.student.parameters(), MAX_GRADIENT)
                self.optimizer.step()

    def _ppo_loss(self, log_probs: Tensor, actions: Tensor, before: Tensor, advantage: Tensor) -> Tensor:
        clip = self.settings.clip
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        ratio = (_of(log_probs, actions) - before).exp()
        gain = torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        return -(gain + self.settings.entropy * entropy).mean()


def _of(log_probs: Tensor, actions: Tensor) -> Tensor:
    return log_probs.gather(-1, actions[..., None]).squeeze(-1)
