"""Attaching and undoing: once, completely, whatever is installed."""

from __future__ import annotations

import concurrent.futures._base
import gc
import multiprocessing.connection
import multiprocessing.process
import queue
import subprocess
import sys
import threading

import gymnasium as gym
import pytest
import torch
import torch.utils.data.dataloader
from generic_probes import GENERIC, calls, profiled, snapshot_of
from trainings import ppo

from rlprof import Profiler, RlprofWarning
from rlprof.probes import gymnasium as gymnasium_probe
from rlprof.probes.patches import Patches, with_subclasses
from rlprof.probes.phases import phases_of
from rlprof.probes.probe import Probe
from rlprof.probes.registry import Attached


def everything():
    """What the probes may touch: classes and modules, with what they hold now."""
    bases = (gym.Env, gym.vector.VectorEnv, torch.optim.Optimizer, torch.nn.Module)
    classes = {cls for base in bases for cls in with_subclasses(base)}
    others = [
        torch, torch.autograd, torch.cuda, torch.nn.utils, torch.nn.utils.clip_grad, torch.Tensor,
        torch.utils.data.dataloader._BaseDataLoaderIter, threading.Condition, threading.Thread, queue.Queue,
        concurrent.futures.Future, multiprocessing.connection, multiprocessing.connection.Connection,
        multiprocessing.process.BaseProcess, subprocess.Popen,
    ]  # fmt: skip
    return {owner: dict(vars(owner)) for owner in (*classes, *others)}


def differences(before, after):
    return [
        (owner, name)
        for owner, held in before.items()
        for name in {*held, *after[owner]}
        if held.get(name) is not after[owner].get(name) and name not in ("__doc__", "_abc_impl", "__annotations__")
    ]


def train():
    return ppo.train(iterations=1, envs=2, steps=8, epochs=1, minibatches=1)


@pytest.mark.long
def test_undone_every_library_is_as_it_was():
    train()  # torch changes an optimizer's class when the first is made
    gc.collect()
    before = everything()
    attached = Attached(Profiler())
    attached.attach(GENERIC)
    train()
    assert len(differences(before, everything())) > 30
    attached.undo()
    assert differences(before, everything()) == []
    attached.undo()


def test_an_optimizer_class_that_is_new_is_left_as_torch_makes_it():
    class New(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    attached = Attached(Profiler())
    attached.attach(GENERIC)
    New([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    timed = vars(New)["step"]
    attached.undo()
    assert vars(New)["step"] is timed.__wrapped__
    assert vars(New)["step"].hooked


def test_attaching_twice_attaches_once():
    attached = Attached(profiler := Profiler())
    attached.attach(GENERIC)
    once = everything()
    attached.attach(GENERIC)
    assert differences(once, everything()) == []
    profiler.enable()
    train()
    attached.undo()
    snapshot = snapshot_of(profiler)
    assert (snapshot.steps, calls(snapshot)["env_step"]) == (16, 8)


def test_attached_again_it_records_again():
    for _ in range(2):
        with profiled() as profiler:
            train()
        assert calls(snapshot_of(profiler))["update"] == 1


def test_switched_off_nothing_is_recorded():
    attached = Attached(profiler := Profiler())
    attached.attach(GENERIC)
    train()
    attached.undo()
    assert snapshot_of(profiler).accounts == []


@pytest.mark.filterwarnings("error")
def test_a_library_that_is_absent_is_passed_over_in_silence():
    attached = Attached(Profiler())
    attached.attach([Probe("no-such-library", {"no_such_library": lambda _module, _patches: 1 / 0})])
    attached.undo()


@pytest.mark.parametrize("version", ["99.0.1", "0.1"])
def test_an_untested_version_warns_once_and_is_attached_anyway(version, monkeypatch):
    monkeypatch.setattr(Probe, "version", lambda _: version)
    profiler = Profiler()
    attached = Attached(profiler)
    with pytest.warns(RlprofWarning, match=f"gymnasium {version} is none of the versions") as warned:
        attached.attach([gymnasium_probe.PROBE])
        attached.attach([gymnasium_probe.PROBE])
    profiler.enable()
    train()
    attached.undo()
    assert len(warned) == 1
    assert snapshot_of(profiler).steps == 16


def test_a_probe_that_breaks_warns_and_the_others_carry_on():
    def half(module, patches):
        patches.time(module.Env, "reset", "env_reset")
        raise RuntimeError("it is another gymnasium")

    before = everything()
    attached = Attached(Profiler())
    with pytest.warns(RlprofWarning, match="cannot attach to gymnasium .*another gymnasium"):
        attached.attach([Probe("gymnasium", {"gymnasium": half})])
    assert differences(before, everything()) == []
    attached.undo()


def test_an_attribute_that_other_code_has_replaced_since_stays():
    class Library:
        def work(self):
            return 1

    patches = Patches(Profiler())
    patches.time(Library, "work", "work")
    Library.work = replaced = lambda _: 2
    patches.undo()
    assert vars(Library)["work"] is replaced


def test_attributes_that_were_not_there_are_gone_again():
    class Library:
        pass

    patches = Patches(Profiler())
    patches.put(Library, "extra", 1)
    assert Library.extra == 1
    patches.undo()
    assert "extra" not in vars(Library)


@pytest.mark.parametrize("core", ["c", "python"])
def test_what_is_put_around_a_function_is_called_outermost_and_while_recording(core):
    profiler = Profiler(core)
    patches = Patches(profiler)
    seen = []

    class Library:
        def outer(self, depth):
            return self.outer(depth - 1) if depth else self.other()

        def other(self):
            return "done"

    def make(function, span):
        def around(*args, **kwargs):
            seen.append(function.__name__)
            with span:
                return function(*args, **kwargs)

        return around

    patches.around(Library, "outer", "work", make)
    patches.follow(Library, "other", "other", phases_of(patches).loop, "reset", family=("work",))
    library = Library()
    assert library.outer(3) == "done"
    assert seen == []
    profiler.enable()
    assert library.outer(3) == library.outer(depth=2) == Library.outer(library, 1) == "done"
    assert library.other() == "done"
    profiler.disable()
    assert seen == ["outer", "outer", "outer"]
    assert calls(snapshot_of(profiler)) == {"work": 3, "other": 1}


@pytest.mark.long
def test_a_module_imported_later_is_attached_then():
    program = """
import sys
from rlprof import Profiler
from rlprof.probes import gymnasium, torch, waiting
from rlprof.probes.registry import Attached
profiler = Profiler()
attached = Attached(profiler)
attached.attach([waiting.PROBE, gymnasium.PROBE, torch.PROBE])
assert not {"torch", "numpy", "gymnasium"} & set(sys.modules)
profiler.enable()
from torch.nn.utils import clip_grad_norm_
import gymnasium, torch
env = gymnasium.make("CartPole-v1")
env.reset(seed=1)
env.step(0)
net = torch.nn.Linear(4, 1)
net(torch.ones(2, 4)).sum().backward()
clip_grad_norm_(net.parameters(), 1.0)
profiler.disable()
print(sorted(account.operation for account in profiler.snapshot().accounts if not account.operation.endswith("wait")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['backward', 'env_reset', 'env_step', 'gradient_clip', 'loss_forward']"
