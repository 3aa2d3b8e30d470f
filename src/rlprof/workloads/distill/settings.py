"""The settings of distill. In all of them a step is one action of one agent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rlprof.errors import RlprofError
from rlprof.workloads.settings import Count, Number, Positive, PPOSettings, Settings, Share


@dataclass(frozen=True)
class ProfilerSettings:
    """A torch trace of some iterations."""

    enabled: bool = False
    """Capture a torch trace."""
    wait_steps: Number = 1
    """Iterations before the warm-up."""
    warmup_steps: Number = 1
    """Warm-up iterations before the trace."""
    active_steps: Count = 3
    """Iterations in the trace."""
    record_shapes: bool = False
    """Record the shapes of tensors."""


@dataclass(frozen=True)
class TrainerSettings:
    total_timesteps: Count | None = None
    """Total agent steps, instead of iterations."""
    batch_size: Count = 128
    """Agent steps per gradient step, in whole segments of `bptt`."""
    mixed_precision: bool = False
    """Compute the policy in bfloat16 wherever autocast does."""
    profiler: ProfilerSettings = field(default_factory=ProfilerSettings)


@dataclass(frozen=True)
class EvaluatorSettings:
    evaluate_local: bool = True
    """Evaluate the policy regularly, without random actions."""
    epoch_interval: Count = 10
    """Iterations between two evaluations."""


@dataclass(frozen=True)
class PolicySettings:
    tokens: Count = 48
    """Tokens that the policy reads, the nearest of the 200 of an observation."""
    latents: Count = 12
    """Latent vectors that attend to the tokens."""
    width: Count = 64
    """Width of a latent and of the recurrent state."""
    heads: Count = 4
    """Heads of each attention."""
    layers: Count = 2
    """Layers in which latents attend to the tokens and to each other."""


@dataclass(frozen=True)
class DistillSettings(PPOSettings, Settings):
    run: str = ""
    """Name of the session."""
    base_missions: Literal["extractor_hub_14", "extractor_hub_30", "extractor_hub_50"] = "extractor_hub_30"
    """Grid world, with its size, walls and extractors."""
    supervised_steps: Number = 20_000
    """Agent steps in which the student imitates the teacher, before PPO begins."""
    batched_teacher: bool = False
    """Call the teacher once for all agents, instead of once per environment."""
    preallocated: bool = False
    """Reuse buffers on host and device, instead of allocating new ones per step."""
    timing_every: Number = 10
    """Print a timing tree every so many rollouts, or never if 0."""
    iterations: Count = 30
    envs: Count = 8
    """Number of grid worlds, stepped together."""
    agents: Count = 4
    """Number of agents per world."""
    bptt: Count = 32
    """Steps per rollout, through which the recurrent layer is trained."""
    episode_segments: Count = 2
    """Number of rollouts before a world is replaced by a new one."""
    epochs: Count = 1
    """Passes over each rollout."""
    learning_rate: Positive = 2e-3
    """Learning rate of Adam while the student imitates the teacher."""
    ppo_learning_rate: Positive = 3e-4
    """Learning rate of Adam in PPO."""
    gamma: Share = 0.97
    trainer: TrainerSettings = field(default_factory=TrainerSettings)
    evaluator: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)

    @property
    def session_name(self) -> str:
        return self.run

    @property
    def pupils(self) -> int:
        """Agents in all environments."""
        return self.envs * self.agents

    @property
    def steps_per_iteration(self) -> int:
        return self.pupils * self.bptt

    @property
    def total_iterations(self) -> int:
        total = self.trainer.total_timesteps
        return super().total_iterations if total is None else -(-total // self.steps_per_iteration)

    @property
    def supervised_iterations(self) -> int:
        """Iterations with a teacher, which teaches whole rollouts."""
        return min(self.total_iterations, -(-self.supervised_steps // self.steps_per_iteration))

    def check(self) -> None:
        if self.seed < 0:
            raise RlprofError(f"seed={self.seed}: a seed must not be negative")
        batch = self.trainer.batch_size
        if batch % self.bptt:
            raise RlprofError(
                f"trainer.batch_size={batch}: a batch must consist of whole segments of bptt={self.bptt} steps; "
                f"try {-(-batch // self.bptt) * self.bptt}"
            )
        if batch > self.steps_per_iteration:
            raise RlprofError(
                f"trainer.batch_size={batch}: a rollout has only {self.steps_per_iteration} agent steps "
                f"(envs={self.envs} x agents={self.agents} x bptt={self.bptt}); use more envs or a smaller batch"
            )
        if self.policy.width % self.policy.heads:
            raise RlprofError(
                f"policy.width={self.policy.width} cannot be divided into policy.heads={self.policy.heads} heads; "
                f"try {-(-self.policy.width // self.policy.heads) * self.policy.heads}"
            )
