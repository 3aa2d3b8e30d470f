"""The C core's Loop against its twin: whatever calls a training makes, both know the same of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from generic_probes import calls, places, snapshot_of
from hypothesis import given, settings
from hypothesis import strategies as st

from rlprof import Profiler
from rlprof.probes.loop import new_loop
from rlprof.probes.patches import Patches
from rlprof.probes.phases import phases_of

STATE = (
    "phase", "on", "training", "stepping", "learned", "counted_steps", "counted_episodes", "envs", "steps",
    "action_chosen", "acted", "prefilled", "mixed", "counting", "fresh", "stepped", "last_ended", "whole",
)  # fmt: skip
BATCHES = [
    torch.ones(1, 4),
    torch.ones(4, 4),
    torch.ones(64, 4),
    {"obs": torch.ones(4, 4)},
    (torch.ones(1, 3),),
    None,
    7,
]


class Library:
    """What trainings call, each once outermost."""

    num_envs = 4

    def __init__(self):
        self.ends = False

    def step(self, _action):
        return 0, 0.0, self.ends, False, {}

    def vector_step(self, _action):
        flags = np.zeros(4, dtype=bool)
        flags[:2] = self.ends
        return 0, 0.0, flags, np.roll(flags, 1), {}

    def nested_step(self, action):
        return self.step(action)

    def reset(self):
        return 0, {}

    def forward(self, batch):
        return batch

    def backward(self):
        return None

    def optimizer(self):
        return None

    def zero_grad(self):
        return None

    def fail(self, _action):
        raise KeyError(7)


KINDS = {
    "step": "env_step", "vector_step": "env_step", "nested_step": "env_step", "fail": "env_step", "reset": "env_reset",
    "forward": "policy_forward", "backward": "backward", "optimizer": "optimizer_step", "zero_grad": "zero_grad",
}  # fmt: skip
SPECIAL = {"nested_step": "step", "fail": "step"}

ACTIONS = st.one_of(
    st.tuples(st.sampled_from([name for name in KINDS if name != "forward"]), st.integers(0, 2), st.just(False)),
    st.tuples(st.just("forward"), st.integers(0, len(BATCHES) - 1), st.booleans()),
)
"""What is called; of which of three environments, or with which batch; with gradients or not."""


def play(core, actions):
    library = type("Library", (Library,), {name: getattr(Library, name) for name in KINDS})
    profiler = Profiler(core, clock="fake")
    patches = Patches(profiler)
    loop = phases_of(patches).loop
    loop.use_torch(torch.is_grad_enabled, torch._C._get_tracing_state, torch.Tensor)
    loop.training = True
    for name, operation in KINDS.items():
        patches.follow(library, name, operation, loop, SPECIAL.get(name, name))
    profiler.enable()
    objects, states = [library(), library(), library()], []
    for number, (name, batch, gradients) in enumerate(actions):
        used = objects[batch % 3]
        used.ends = number % 3 == 0
        with torch.set_grad_enabled(gradients):
            if name == "forward":
                used.forward(BATCHES[batch])
            elif name == "fail":
                with pytest.raises(KeyError):
                    used.fail(0)
            elif "step" in name:
                getattr(used, name)(0)
            else:
                getattr(used, name)()
        states.append(tuple(getattr(loop, field) for field in STATE))
    patches.undo()
    profiler.disable()
    snapshot = snapshot_of(profiler)
    return states, snapshot.steps, snapshot.episodes, snapshot.iterations, calls(snapshot), places(snapshot)


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTIONS, max_size=60))
def test_both_cores_know_the_same(actions):
    assert play("c", actions) == play("python", actions)


@pytest.mark.parametrize("core", ["c", "python"])
@pytest.mark.parametrize(
    "dones", [np.array([True, False, True]), np.array([1.0, 0.0, 1.0]), [True, False, True], torch.tensor([1, 0, 1])]
)
def test_ended_episodes_are_counted_from_any_kind_of_flags_and_the_call_is_not_timed(core, dones):
    class Model:
        def update_infos(self, infos, dones=None):
            return infos

    profiler = Profiler(core)
    patches = Patches(profiler)
    patches.follow(Model, "update_infos", "episode_info", phases_of(patches).loop, "dones")
    profiler.enable()
    assert Model().update_infos("a", dones) == "a"
    assert Model().update_infos("b", dones=dones) == "b"
    assert Model().update_infos("c") == "c"
    patches.undo()
    profiler.disable()
    snapshot = snapshot_of(profiler)
    assert (snapshot.steps, snapshot.episodes, calls(snapshot)) == (6, 4, {})


@pytest.mark.parametrize("core", ["c", "python"])
def test_many_sizes_are_not_all_kept(core):
    profiler = Profiler(core)
    patches = Patches(profiler)
    loop = phases_of(patches).loop
    loop.training = True

    class Net:
        def forward(self, batch):
            return batch

        def step(self):
            return 0, 0.0, False, False, {}

    patches.follow(Net, "forward", "policy_forward", loop, "forward")
    patches.follow(Net, "step", "env_step", loop, "step")
    profiler.enable()
    net = Net()
    net.step()
    for size in range(1, 101):
        net.forward(np.ones((size, 2)))
        net.step()
    profiler.disable()
    patches.undo()
    kept = [size for size in range(101) if loop.has_acted(size, False)]
    assert kept == list(range(69, 101))


@pytest.mark.filterwarnings("ignore::rlprof.RlprofWarning")
@pytest.mark.parametrize("core", ["c", "python"])
def test_rules_that_fail_do_not_stop_a_training(core):
    class Rules:
        def __getattr__(self, name):
            raise RuntimeError(name)

    profiler = Profiler(core)
    spans = [profiler.profile(name) for name in ("policy_forward", "loss_forward", "env_forward")]
    loop = new_loop(profiler, Rules(), *spans)
    loop.training = True
    patches = Patches(profiler)

    class Env:
        def step(self, _action):
            return "no tuple"

        def forward(self, batch):
            return batch

    patches.follow(Env, "step", "env_step", loop, "step")
    patches.follow(Env, "forward", "policy_forward", loop, "forward")
    profiler.enable()
    env = Env()
    assert env.step(0) == "no tuple"
    assert env.forward([1]) == [1]
    loop.phase = 1
    assert env.forward([1]) == [1]
    profiler.disable()
    assert snapshot_of(profiler).steps == 1
