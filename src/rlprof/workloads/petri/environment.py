"""The nets as an environment of TorchRL: a batch of cluster tools, stepped together."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tensordict import TensorDict, TensorDictBase
from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
from torchrl.envs import ActionMask, EnvBase, RewardSum, StepCounter, TransformedEnv

from rlprof import profile
from rlprof.workloads.petri import rules
from rlprof.workloads.petri.net import Bools, Ints, Nets
from rlprof.workloads.petri.settings import PetriSettings
from rlprof.workloads.petri.turbo import TurboNets

_MOST_SECONDS = 1 << 31


class ClusterTools(EnvBase):  # type: ignore[misc]  # TorchRL has no type hints
    """TorchRL's own work is the self time of `env_step`. The nets' work is `net_step` inside it."""

    def __init__(self, nets: Nets, count: int) -> None:
        super().__init__(device="cpu", batch_size=[count])
        self._nets = nets
        self.observation_spec = Composite(
            observation=Bounded(-1, _MOST_SECONDS, (count, rules.OBSERVATION), dtype=torch.int64),
            action_mask=Binary(rules.ACTIONS, (count, rules.ACTIONS), dtype=torch.bool),
            shape=(count,),
        )
        self.action_spec = Categorical(rules.ACTIONS, (count,))
        self.reward_spec = Unbounded((count, 1))
        self.done_spec = Composite(
            done=Binary(1, (count, 1), dtype=torch.bool),
            terminated=Binary(1, (count, 1), dtype=torch.bool),
            shape=(count,),
        )

    def _reset(self, tensordict: TensorDictBase | None, **_: Any) -> TensorDictBase:
        which = None if tensordict is None else tensordict.get("_reset", None)
        with profile("net_reset"):
            self._nets.reset(np.ones(self.batch_size[0], np.bool_) if which is None else which.squeeze(-1).numpy())
            seen = self._nets.observations(), self._nets.masks()
        no = torch.zeros(*self.batch_size, 1, dtype=torch.bool)
        return self._seen(*seen, done=no, terminated=no.clone())

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        actions = tensordict["action"].numpy()
        with profile("net_step"):
            rewards, ended = self._nets.step(actions)
            seen = self._nets.observations(), self._nets.masks()
        terminated = torch.from_numpy(ended).unsqueeze(-1)
        reward = torch.from_numpy(rewards).float().unsqueeze(-1)
        return self._seen(*seen, reward=reward, done=terminated, terminated=terminated.clone())

    def _seen(self, observations: Ints, masks: Bools, **more: torch.Tensor) -> TensorDictBase:
        seen = {"observation": torch.from_numpy(observations), "action_mask": torch.from_numpy(masks)}
        return TensorDict({**seen, **more}, self.batch_size)

    def _set_seed(self, seed: int | None) -> None:
        """Nothing in a net is random."""


def make_environment(settings: PetriSettings) -> TransformedEnv:
    """The environment with masked actions, a horizon, and the return of each episode."""
    nets = TurboNets(settings.envs) if settings.turbo else Nets(settings.envs)
    env = TransformedEnv(ClusterTools(nets, settings.envs), ActionMask())
    env.append_transform(StepCounter(max_steps=settings.horizon))
    env.append_transform(RewardSum())
    env.set_seed(settings.seed)
    return env
