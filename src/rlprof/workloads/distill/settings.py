"""The settings of distill. A step is one action of one agent, in all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rlprof.errors import RlprofError
from rlprof.workloads.settings import Count, Number, Positive, Settings, Share


@dataclass(frozen=True)
class ProfilerSettings:
    """A torch trace of some iterations."""

    enabled: bool = False
    """capture one"""
    wait_steps: Number = 1
    """iterations before it"""
    warmup_steps: Number = 1
    """iterations to warm up with"""
    active_steps: Count = 3
    """iterations that are captured"""
    record_shapes: bool = False
    """with the shapes of tensors"""


@dataclass(frozen=True)
class TrainerSettings:
    total_timesteps: Count | None = None
    """agent steps in all, instead of iterations"""
    batch_size: Count = 128
    """agent steps in a gradient step: whole segments of `bptt`"""
    mixed_precision: bool = False
    """compute the policy in bfloat16 where torch's autocast does"""
    profiler: ProfilerSettings = field(default_factory=ProfilerSettings)
    """a torch trace of some iterations"""


@dataclass(frozen=True)
class EvaluatorSettings:
    evaluate_local: bool = True
    """now and then see what the policy does without chance"""
    epoch_interval: Count = 10
    """iterations from one evaluation to the next"""


@dataclass(frozen=True)
class PolicySettings:
    tokens: Count = 48
    """that are looked at, the nearest, of the 200 of an observation"""
    latents: Count = 12
    """vectors that look at them"""
    width: Count = 64
    """of a latent, and of the recurrent state"""
    heads: Count = 4
    """of each attention"""
    layers: Count = 2
    """in which latents look at the tokens and at each other"""


@dataclass(frozen=True)
class DistillSettings(Settings):
    run: str = ""
    """what the session is called"""
    base_missions: Literal["extractor_hub_14", "extractor_hub_30", "extractor_hub_50"] = "extractor_hub_30"
    """the grid world: its size, walls and extractors"""
    supervised_steps: Number = 20_000
    """agent steps in which the teacher is followed; after them it is switched off, and PPO begins"""
    batched_teacher: bool = False
    """ask the teacher for all agents at once, instead of one environment after the other"""
    preallocated: bool = False
    """keep buffers on host and device, instead of making them at each step"""
    timing_every: Number = 10
    """rollouts from one timing tree on the standard error to the next; 0 for none"""
    iterations: Count = 30
    """turns of collect-and-update"""
    envs: Count = 8
    """grid worlds, stepped together"""
    agents: Count = 4
    """agents in each world"""
    bptt: Count = 32
    """steps of a rollout, and of the segments that the recurrent layer learns from"""
    episode_segments: Count = 2
    """rollouts until a world is made anew"""
    epochs: Count = 1
    """passes over a rollout"""
    learning_rate: Positive = 2e-3
    """of Adam while the teacher is followed"""
    ppo_learning_rate: Positive = 3e-4
    """of Adam afterwards"""
    gamma: Share = 0.97
    """discount of the reward"""
    gae_lambda: Share = 0.95
    """how far an advantage looks ahead"""
    clip: Positive = 0.2
    """how far a probability ratio may leave 1"""
    entropy: float = 0.01
    """weight of the entropy bonus in PPO"""
    trainer: TrainerSettings = field(default_factory=TrainerSettings)
    """length, batches, precision and trace"""
    evaluator: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    """when the policy is looked at"""
    policy: PolicySettings = field(default_factory=PolicySettings)
    """the network"""

    @property
    def session_name(self) -> str:
        return self.run

    @property
    def pupils(self) -> int:
        """Agents of all environments."""
        return self.envs * self.agents

    @property
    def steps_per_iteration(self) -> int:
        return self.pupils * self.bptt

    @property
    def turns(self) -> int:
        total = self.trainer.total_timesteps
        return super().turns if total is None else -(-total // self.steps_per_iteration)

    @property
    def supervised_turns(self) -> int:
        """Iterations with a teacher: a rollout is taught as a whole."""
        return min(self.turns, -(-self.supervised_steps // self.steps_per_iteration))

    def check(self) -> None:
        """Raise for settings that do not go together."""
        if self.seed < 0:
            raise RlprofError(f"seed={self.seed}: a seed is not negative")
        batch = self.trainer.batch_size
        if batch % self.bptt:
            raise RlprofError(
                f"trainer.batch_size={batch}: a batch is whole segments of bptt={self.bptt} steps; "
                f"{-(-batch // self.bptt) * self.bptt} would do"
            )
        if batch > self.steps_per_iteration:
            raise RlprofError(
                f"trainer.batch_size={batch}: a rollout has only {self.steps_per_iteration} agent steps "
                f"(envs={self.envs} x agents={self.agents} x bptt={self.bptt}); more envs, or a smaller batch"
            )
        if self.policy.width % self.policy.heads:
            raise RlprofError(
                f"policy.width={self.policy.width} cannot be cut into policy.heads={self.policy.heads} heads; "
                f"{-(-self.policy.width // self.policy.heads) * self.policy.heads} would do"
            )
