"""PPO as TorchRL's examples write it: networks, a collector, GAE, a replay buffer, a clipped loss."""

from __future__ import annotations

import logging
from itertools import pairwise

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from rlprof import profile
from rlprof.errors import RlprofError
from rlprof.workloads.devices import prepare_torch
from rlprof.workloads.petri import rules
from rlprof.workloads.petri.environment import make_environment
from rlprof.workloads.petri.settings import PetriSettings
from rlprof.workloads.progress import Progress
from rlprof.workloads.workload import Parts, part

POLICY_LAYERS, VALUE_LAYERS = 4, 3
MAX_GRADIENT = 1.0
REWARD_SCALE = 0.01
"""A finished lot of wafers is worth thousands, but a value network learns numbers around one."""

logging.getLogger("torchrl").setLevel(logging.WARNING)  # it logs every buffer that it allocates


class _Scaled(nn.Module):
    """Scale whole numbers of very different sizes to fractions of their largest values."""

    def __init__(self) -> None:
        super().__init__()
        longest = max(rules.PROCESSING_SECONDS)
        largest = torch.tensor([rules.WAFERS, len(rules.PLACES), rules.MUST_LEAVE, longest, longest])
        self.scale: Tensor
        self.register_buffer("scale", 1 / largest.repeat(rules.WAFERS))

    def forward(self, observation: Tensor) -> Tensor:
        return (observation * self.scale).clamp(-1, 2)


def _mlp(layers: int, hidden: int, outputs: int) -> nn.Sequential:
    sizes = [rules.OBSERVATION, *[hidden] * layers]
    inner = [module for pair in pairwise(sizes) for module in (nn.Linear(*pair), nn.Tanh())]
    return nn.Sequential(_Scaled(), *inner, nn.Linear(hidden, outputs))


def make_policy(settings: PetriSettings) -> ProbabilisticActor:
    network = _mlp(POLICY_LAYERS, settings.hidden, rules.ACTIONS).to(settings.device)
    return ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["logits"]),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )


class Learner:
    """Everything that happens to a batch after it was collected."""

    def __init__(self, settings: PetriSettings) -> None:
        self.settings = settings
        prepare_torch(settings)
        if settings.minibatch > settings.steps_per_iteration:
            raise RlprofError(f"minibatch={settings.minibatch}: a batch has only {settings.steps_per_iteration} frames")
        self.policy = make_policy(settings)
        network = _mlp(VALUE_LAYERS, settings.hidden, 1).to(settings.device)
        value = ValueOperator(network, in_keys=["observation"])
        self.advantage = GAE(gamma=settings.gamma, lmbda=settings.gae_lambda, value_network=value, average_gae=True)
        self.buffer = TensorDictReplayBuffer(
            storage=LazyTensorStorage(settings.steps_per_iteration, device=settings.device),
            sampler=SamplerWithoutReplacement(),
            batch_size=settings.minibatch,
        )
        self.loss = ClipPPOLoss(
            self.policy, value, clip_epsilon=settings.clip, entropy_coeff=settings.entropy, critic_coeff=0.5
        )
        self.optimizer = torch.optim.Adam(self.loss.parameters(), lr=settings.learning_rate)

    def learn(self, batch: TensorDictBase) -> None:
        for _ in range(self.settings.epochs):
            with torch.no_grad():
                self.advantage(batch)
            self.buffer.extend(batch.reshape(-1))
            for _ in range(self.settings.steps_per_iteration // self.settings.minibatch):
                self._step(self.buffer.sample())

    def _step(self, frames: TensorDictBase) -> None:
        losses = self.loss(frames)
        loss = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
        loss.backward()
        nn.utils.clip_grad_norm_(self.loss.parameters(), MAX_GRADIENT)
        self.optimizer.step()
        self.optimizer.zero_grad()


def make_collector(settings: PetriSettings, learner: Learner) -> Collector:
    return Collector(
        make_environment(settings),
        learner.policy,
        frames_per_batch=settings.steps_per_iteration,
        total_frames=settings.steps_per_iteration * settings.total_iterations,
        policy_device=settings.device,
        env_device="cpu",
        storing_device=settings.device,
        auto_register_policy_transforms=False,
    )


def train(settings: PetriSettings, progress: Progress) -> None:
    learner = Learner(settings)
    collector = make_collector(settings, learner)
    progress.begin(settings.total_iterations)
    for batch in collector:
        with profile("logging"):
            score = mean_return(batch)
            batch["next", "reward"] *= REWARD_SCALE
        learner.learn(batch)
        with profile("logging"):
            progress.advance(score, batch.numel())
    collector.shutdown()


def mean_return(batch: TensorDictBase) -> float | None:
    """Mean return of the episodes that ended in a batch."""
    ended = batch["next", "episode_reward"][batch["next", "done"]]
    return float(ended.mean()) if len(ended) else None


def parts(settings: PetriSettings) -> Parts:
    learner = Learner(settings)
    batch: TensorDictBase = next(iter(make_collector(settings, learner)))
    batch["next", "reward"] *= REWARD_SCALE
    environment = make_environment(settings)
    state = environment.rand_action(environment.reset())
    frames = batch[:, 0].to(settings.device)

    def step_environments() -> None:
        nonlocal state
        _, state = environment.step_and_maybe_reset(state)
        environment.rand_action(state)

    @torch.no_grad()
    def run_policy() -> None:
        learner.policy(frames.select("observation", "action_mask"))

    return {
        "environments": part(step_environments, settings.envs),
        "policy": part(run_policy, settings.envs),
        "update": part(lambda: learner.learn(batch.clone()), settings.steps_per_iteration),
    }
