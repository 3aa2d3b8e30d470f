"""A training under the probe of TorchRL is the training it would be alone."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
import torch
from quiet_torchrl import recorded
from tensordict import LazyStackedTensorDict, TensorDict, TensorDictBase
from tensordict.nn import TensorDictModule
from torchrl.collectors import BaseCollector, Collector
from torchrl.data import ReplayBuffer
from torchrl.envs import EnvBase, GymEnv, ParallelEnv
from torchrl.modules import MLP, NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, LossModule, SACLoss, SoftUpdate
from torchrl.objectives.value import GAE, ValueEstimatorBase
from torchrl.trainers import Trainer
from trainings import torchrl_dqn
from trainings.torchrl_ppo import Args, Training

pytestmark = pytest.mark.filterwarnings("default")  # TorchRL and Dynamo warn of themselves

CLASSES = (
    BaseCollector,
    Collector,
    EnvBase,
    ParallelEnv,
    ReplayBuffer,
    LossModule,
    ClipPPOLoss,
    SACLoss,
    ValueEstimatorBase,
    GAE,
    Trainer,
    TensorDictBase,
    TensorDict,
    LazyStackedTensorDict,
)


def same(these, those):
    return these.keys() == those.keys() and all(torch.equal(these[key], those[key]) for key in these)


@pytest.mark.long
def test_the_same_seed_gives_the_same_weights_and_returns():
    args = Args(frames=256, batch=64, minibatch=32, epochs=2)
    returns, weights = Training(args).run()
    with recorded() as profiler:
        profiled_returns, profiled_weights = Training(args).run()
    assert profiler.snapshot().account("loss").calls == 16
    assert returns == profiled_returns
    assert len(returns) > 2
    assert same(weights, profiled_weights)


@pytest.mark.long
def test_the_same_seed_gives_the_same_weights_with_a_replay_buffer_and_a_target_network():
    weights = torchrl_dqn.train()
    with recorded() as profiler:
        assert same(weights, torchrl_dqn.train())
    assert profiler.snapshot().account("target_update").calls > 0


def test_everything_is_put_back():
    before = [dict(vars(cls)) for cls in CLASSES]
    with recorded():
        assert [dict(vars(cls)) for cls in CLASSES] != before
        Training(Args(frames=64, batch=64, minibatch=64, epochs=1)).run()
    theirs = {"_abc_impl", "_register_gym"}  # TorchRL chooses the latter anew with each environment
    for cls, held in zip(CLASSES, before):
        assert vars(cls).keys() == held.keys()
        assert {name for name, value in vars(cls).items() if value is not held[name]} <= theirs, cls


def ppo_loss():
    actor = ProbabilisticActor(
        TensorDictModule(torch.nn.Linear(4, 2), ["observation"], ["logits"]),
        in_keys=["logits"],
        distribution_class=torch.distributions.OneHotCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(torch.nn.Linear(4, 1), in_keys=["observation"])
    loss = ClipPPOLoss(actor, critic)
    data = transitions()
    with torch.no_grad():
        actor(data)
        GAE(gamma=0.9, lmbda=0.9, value_network=critic)(data)
    return loss, data.exclude("logits")


def sac_loss():
    actor = ProbabilisticActor(
        TensorDictModule(
            torch.nn.Sequential(torch.nn.Linear(4, 2), NormalParamExtractor()), ["observation"], ["loc", "scale"]
        ),
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
    )
    value = ValueOperator(MLP(in_features=5, out_features=1, num_cells=[8]), in_keys=["observation", "action"])
    loss = SACLoss(actor, value, num_qvalue_nets=2, action_spec=None, target_entropy=-1.0)
    loss.make_value_estimator(gamma=0.9)
    SoftUpdate(loss, eps=0.9)
    return loss, transitions().set("action", torch.rand(16, 1))


def transitions():
    def step():
        return {"observation": torch.randn(16, 4)}

    ends = {name: torch.zeros(16, 1, dtype=torch.bool) for name in ("done", "terminated")}
    return TensorDict({**step(), "next": {**step(), "reward": torch.randn(16, 1), **ends}}, [16])


def reshaped(data):
    both = torch.stack([data.clone(), data.select("observation", "next")], 0).reshape(-1)
    halves = both.split(16, 0)
    halves[0].update({"twice": halves[0]["observation"] * 2})
    return torch.cat([half.exclude("twice") for half in halves], 0).apply(lambda value: value + 1).unsqueeze(0)


def tensordict_case():
    return reshaped, transitions().exclude(("next", "done"), ("next", "terminated"))


def compiled(make):
    """What each graph computes, and the result."""
    graphs = []

    def backend(graph, _inputs):
        graphs.append([(node.op, str(node.target)) for node in graph.graph.nodes if node.op != "placeholder"])
        return graph

    torch._dynamo.reset()
    torch.manual_seed(0)
    function, data = make()
    fast = torch.compile(function, backend=backend)
    for _ in range(3):
        torch.manual_seed(1)
        result = fast(data)
    return graphs, result


@pytest.mark.long
@pytest.mark.parametrize("make", [ppo_loss, sac_loss, tensordict_case])
def test_torch_compile_sees_the_same_graphs(make):
    graphs, result = compiled(make)
    with recorded():
        profiled_graphs, profiled_result = compiled(make)
    assert len(graphs) > 0
    assert profiled_graphs == graphs
    assert (profiled_result == result).all()


@pytest.mark.parametrize(
    ("make", "copied"), [(sac_loss, copy.deepcopy), (ppo_loss, lambda loss: pickle.loads(pickle.dumps(loss)))]
)
def test_losses_are_copied_and_pickled_as_ever(make, copied):
    torch.manual_seed(0)
    loss, data = make()
    torch.manual_seed(1)
    expected = loss(data.clone())
    with recorded() as profiler:
        other = copied(loss)
        torch.manual_seed(1)
        assert (other(data.clone()) == expected).all()
    assert profiler.snapshot().account("loss").calls == 1


def test_signatures_and_attributes_stay():
    with recorded():
        assert list(inspect.signature(GAE.forward).parameters)[:2] == ["self", "tensordict"]
        assert list(inspect.signature(EnvBase.step).parameters) == ["self", "tensordict"]
        assert inspect.isgeneratorfunction(BaseCollector.__iter__)
        assert GymEnv("CartPole-v1").step.__name__ == "step"
        assert "frames_per_batch" in inspect.signature(Collector).parameters


def make_env():
    return GymEnv("CartPole-v1")


@pytest.mark.long
def test_environments_reach_workers_that_are_spawned():
    with recorded() as profiler:
        env = ParallelEnv(2, make_env, mp_start_method="spawn")
        try:
            assert env.rollout(4, break_when_any_done=False).shape == (2, 4)
        finally:
            env.close()
    assert profiler.snapshot().account("env_wait").calls >= 4
