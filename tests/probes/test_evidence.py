"""What the probes know besides times: real libraries with planted settings, against what was planted."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from generic_probes import GENERIC, recorded

from rlprof import Profiler
from rlprof.probes.evidence import EvidenceReader
from rlprof.probes.seen import Seen
from rlprof.session.evidence import Batch, Environment, Evidence, Loader, Optimizer

gymnasium = pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")

# Dynamo warns of its own internals; what rlprof warns of comes as an error.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.filterwarnings("error::rlprof.RlprofWarning")]


class Watched:
    """The evidence of a block, read when it ends."""

    evidence: Evidence


@contextmanager
def watched(core: str = "auto", **options) -> Iterator[Watched]:
    found = Watched()
    with recorded(*GENERIC, core=core, **options) as profiler:
        found.profiler = profiler
        reader = EvidenceReader(profiler)
        yield found
        found.evidence = reader.read()


class Slow(gymnasium.ObservationWrapper):
    """A wrapper that takes far longer than the environment."""

    def observation(self, observation):
        for _ in range(300):
            float(observation[0])
        return observation


def make():
    return Slow(gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 50))


def train(minibatch=8, iterations=4, optimizer=torch.optim.Adam, **options):
    """A small on-policy training: 4 environments, 64 steps of each per iteration."""
    envs = gymnasium.vector.SyncVectorEnv([make] * 4)
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    adam = optimizer(net.parameters(), **options)
    observation, _ = envs.reset(seed=1)
    for _ in range(iterations):
        seen = []
        for _ in range(64):
            with torch.no_grad():
                actions = net(torch.as_tensor(observation)).argmax(-1).numpy()
            observation, *_ = envs.step(actions)
            seen.append(torch.as_tensor(observation))
        batch = torch.cat(seen)
        for rows in batch.split(minibatch):
            adam.zero_grad()
            net(rows).square().mean().backward()
            adam.step()
    return net


@pytest.mark.parametrize("core", ["c", "python"])
def test_batches_optimizers_and_backward_passes_are_counted(core):
    with watched(core) as found:
        train(minibatch=24)
    evidence = found.evidence
    assert evidence.batches.acting == (Batch(4, 256),)
    assert evidence.batches.learning == (Batch(24, 40), Batch(16, 4))  # 256 rows are 10 x 24 and 16
    assert evidence.torch.backwards == 44
    assert evidence.torch.anomalous == 0
    assert evidence.torch.threads == torch.get_num_threads()


def test_an_optimizer_is_described_even_after_it_is_gone():
    with watched() as found:
        reader = EvidenceReader(found.profiler)
        net = torch.nn.Linear(3, 5).double()
        optimizers = [torch.optim.AdamW(net.parameters(), fused=True) for _ in range(2)]
        described = Optimizer("AdamW", 2, 2, 20, None, True, "cpu", "float64")
        assert reader.read().optimizers == (described,)
        del optimizers
        gc.collect()
        assert reader.read().optimizers == (described,)


def test_a_backward_pass_in_anomaly_mode_is_seen():
    with watched() as found:
        value = torch.ones(2, requires_grad=True)
        value.sum().backward()
        with torch.autograd.detect_anomaly(check_nan=False):
            for _ in range(3):
                value.sum().backward()
    assert (found.evidence.torch.backwards, found.evidence.torch.anomalous) == (4, 3)


def test_the_time_of_each_wrapper_is_split_from_the_environment():
    with watched("c") as found:
        train(iterations=8)
    levels = {level.name: level for level in found.evidence.levels}
    assert [level.name for level in found.evidence.levels] == ["SyncVectorEnv", "Slow", "TimeLimit", "CartPoleEnv"]
    assert [level.wraps for level in found.evidence.levels] == [False, True, True, False]
    # One of 17 steps of the vector is measured, with the steps of its environments. Some only reset.
    assert levels["SyncVectorEnv"].calls == -(-8 * 64 // 17)
    assert 2 * levels["SyncVectorEnv"].calls < levels["Slow"].calls <= 4 * levels["SyncVectorEnv"].calls
    assert levels["Slow"].calls == levels["CartPoleEnv"].calls
    assert levels["Slow"].own_ns > levels["TimeLimit"].own_ns > 0
    assert found.evidence.environments == (
        Environment(("SyncVectorEnv", "Slow", "TimeLimit", "CartPoleEnv"), "sync", 4, 4 * 4 * 4),
    )


class Counter:
    """Planted durations of levels: a fake clock that the levels move."""

    def __init__(self, profiler):
        self._profiler = profiler
        self.now = 0

    def tick(self, ns):
        self.now += ns
        self._profiler.ledger.set_time(self.now, self.now)


def test_own_times_of_levels_are_exact_on_a_planted_clock():
    with watched("c", clock="fake") as found:
        clock = Counter(found.profiler)

        class Core(gymnasium.Env):
            def step(self, action):
                clock.tick(100)
                return 0, 0.0, False, False, {}

        class Base(gymnasium.Wrapper):
            def step(self, action):
                clock.tick(30)
                return self.env.step(action)

        class Outer(Base):
            def step(self, action):  # calls the step that it overrides
                clock.tick(7)
                return super().step(action)

        env = Outer(Base(Core()))
        for _ in range(17 * 5):
            env.step(0)
    own = {level.name: (level.calls, level.own_ns) for level in found.evidence.levels}
    assert own == {"Outer": (5, 5 * 37), "Base": (5, 5 * 30), "Core": (5, 5 * 100)}


def test_a_step_that_raises_leaves_the_levels_in_order():
    class Failing(gymnasium.Env):
        def step(self, action):
            if action:
                raise ValueError("planted")
            return 0, 0.0, False, False, {}

    with watched("c") as found:
        env = gymnasium.Wrapper(Failing())
        env = gymnasium.wrappers.TimeLimit(env, 10_000)
        env.reset = lambda **_: (0, {})
        env._elapsed_steps = 0
        for step in range(17 * 4):
            if step % 17 == 0:
                with pytest.raises(ValueError, match="planted"):
                    env.step(1)
            else:
                env.step(0)
    assert {level.name: level.calls for level in found.evidence.levels} == {"TimeLimit": 4, "Failing": 4}


@pytest.mark.parametrize("core", ["c", "python"])
def test_collections_count_from_the_beginning_of_the_training(core):
    before = list(gc.callbacks)
    with watched(core) as found:
        ledger = found.profiler.ledger
        ledger.begin_startup(found.profiler.profile("startup"))
        gc.collect()
        ledger.end_startup()
        gc.disable()
        try:
            cycle = [[]]
            cycle[0].append(cycle)
            del cycle
            gc.collect()
            gc.collect(0)
        finally:
            gc.enable()
    young, _, full = found.evidence.collections
    assert (young.runs, full.runs) == (1, 1)
    assert full.freed >= 2
    assert full.longest_ns == full.ns > 0
    assert full.before_ns > 0
    assert gc.callbacks == before


def test_dataloaders_and_their_workers_are_counted():
    data = torch.utils.data.TensorDataset(torch.arange(12.0))
    with watched() as found:
        for _ in range(3):
            for _ in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True):
                pass
        kept = torch.utils.data.DataLoader(data, batch_size=6, num_workers=1, persistent_workers=True)
        for _ in range(2):
            assert len(list(kept)) == 2
        del kept
    assert set(found.evidence.loaders) == {Loader(0, False, 12, 4, 3, 3), Loader(1, True, 12, 6, 1, 1)}
    assert found.profiler.snapshot().account("loader_workers").calls >= 1


@pytest.mark.long
def test_dynamos_reasons_for_compiling_again_are_read():
    def scaled(batch, factor):
        return batch * factor

    torch._dynamo.reset()
    with watched() as found:
        compiled = torch.compile(scaled, backend="eager", dynamic=False)
        for factor in range(2, 6):
            compiled(torch.ones(3), factor)
    compiling = found.evidence.compiling
    (frame,) = (frame for frame in compiling.frames if frame.function == "scaled")
    assert frame.again == 3
    assert 0 < frame.again_ns <= compiling.ns
    assert frame.file == __file__
    assert "factor == 2" in frame.reasons[0]
    assert found.profiler.snapshot().account("compile").calls >= 4


def test_looking_at_an_environment_leaves_its_attributes_where_they_are():
    """Reading `__dict__` makes CPython keep the attributes in a dictionary, and reading them slower from then on."""
    read = []

    class Watched(gymnasium.Wrapper):
        def __getattribute__(self, name):
            read.append(name)
            return super().__getattribute__(name)

    env = Watched(gymnasium.make("CartPole-v1"))
    read.clear()
    seen = Seen(Profiler("c"))
    seen.saw_environment(env)
    assert seen.environments[0][0][0] == "Watched"
    assert "CartPoleEnv" in seen.environments[0][0]
    assert "__dict__" not in read
