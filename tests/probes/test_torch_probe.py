"""The torch probe: what it names, and that torch's own ways of looking at code see what they would have seen."""

from __future__ import annotations

import inspect
import pickle

import pytest
import torch
from generic_probes import calls, places, profiled, snapshot_of
from networks import Net, Own, compile_and_count
from torch import nn

from rlprof.probes import torch as torch_probe

# Dynamo warns of its own internals; what rlprof warns of comes as an error.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.filterwarnings("error::rlprof.RlprofWarning")]

PROBE = torch_probe.PROBE


def learn(net, optimizer):
    optimizer.zero_grad()
    net(torch.ones(5, 3)).sum().backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    nn.utils.clip_grad_value_(net.parameters(), 1.0)
    optimizer.step()


@pytest.mark.parametrize("core", ["c", "python"])
def test_an_update_is_named(core):
    with profiled(PROBE, core=core) as profiler:
        net = Net()
        learn(net, torch.optim.SGD(net.parameters(), lr=0.1))
        counted = calls(snapshot_of(profiler))
    assert {name: counted[name] for name in ("zero_grad", "backward", "gradient_clip", "optimizer_step")} == {
        "zero_grad": 1, "backward": 1, "gradient_clip": 2, "optimizer_step": 1,
    }  # fmt: skip
    assert counted["loss_forward"] == 1, "the outermost call only"
    assert "rollout" not in counted, "no environment was stepped"


@pytest.mark.parametrize("core", ["c", "python"])
def test_a_module_whose_call_method_is_called_makes_one_pass(core):
    def call(net, batch):
        return net.__call__(batch)

    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    with profiled(core=core) as profiler:
        for _ in range(3):
            net.__call__(torch.ones(2, 3))
            nn.Module.__call__(net, torch.ones(2, 3))
            call(net, torch.ones(2, 3))
    assert calls(snapshot_of(profiler))["loss_forward"] == 9


def test_gradients_from_autograd_grad_are_a_backward_pass():
    with profiled(PROBE) as profiler:
        x = torch.ones(2, requires_grad=True)
        (gradient,) = torch.autograd.grad((x * x).sum(), x)
    assert torch.equal(gradient, torch.full((2,), 2.0))
    assert calls(snapshot_of(profiler))["backward"] == 1


@pytest.mark.parametrize("make", [Own, lambda p: torch.optim.LBFGS(p, max_iter=2), torch.optim.AdamW])
def test_every_optimizer_is_timed_with_its_closure_inside(make):
    with profiled(PROBE) as profiler:
        net = Net()
        optimizer = make(net.parameters())

        def closure():
            optimizer.zero_grad()
            loss = net(torch.ones(5, 3)).square().sum()
            loss.backward()
            return loss

        assert optimizer.step(closure) > 0
        snapshot = snapshot_of(profiler)
    assert calls(snapshot)["optimizer_step"] == 1
    assert {"optimizer_step/backward", "optimizer_step/zero_grad"} <= places(snapshot)


def test_an_optimizer_made_before_is_timed_and_afterwards_is_as_it_was():
    net = Net()
    optimizer = torch.optim.RMSprop(net.parameters())
    before = vars(torch.optim.RMSprop)["step"]
    with profiled(PROBE) as profiler:
        learn(net, optimizer)
        assert inspect.signature(optimizer.step) == inspect.signature(before.__get__(optimizer))
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        learn(net, optimizer)
        scheduler.step()
        pickle.loads(pickle.dumps(optimizer)).step()
    assert calls(snapshot_of(profiler))["optimizer_step"] == 3
    assert vars(torch.optim.RMSprop)["step"] is before


def test_an_optimizer_that_fails_closes_its_span():
    with profiled(PROBE) as profiler:
        optimizer = Own([nn.Parameter(torch.ones(1))])
        with pytest.raises(TypeError):
            optimizer.step()  # it has no gradient
        assert profiler.ledger.depth() == 0


def test_a_dropped_profiler_leaves_data_loading_and_checkpoints_named(tmp_path):
    from torch.utils.data import DataLoader

    with profiled(PROBE) as profiler:
        assert [int(x.sum()) for x in DataLoader(torch.ones(4, 2), batch_size=2)] == [4, 4]
        torch.save(Net().state_dict(), tmp_path / "net.pt")
    counted = calls(snapshot_of(profiler))
    assert counted["data_loading"] == 3  # two batches and the end
    assert counted["checkpoint"] == 1


@pytest.mark.long
def test_waiting_for_loader_processes_is_a_wait():
    from torch.utils.data import DataLoader

    with profiled(PROBE) as profiler:
        assert len(list(DataLoader(torch.ones(4, 2), batch_size=2, num_workers=1))) == 2
    account = snapshot_of(profiler).account("data_loading")
    assert account.waited_ns > 0


def test_what_goes_to_tensorboard_is_logging(tmp_path):
    with profiled(PROBE) as profiler:
        from torch.utils.tensorboard import SummaryWriter

        with SummaryWriter(str(tmp_path)) as writer:
            writer.add_scalar("loss", 1.0, 0)
            writer.add_scalars("losses", {"a": 1.0}, 0)
    assert calls(snapshot_of(profiler))["logging"] >= 3


def test_copies_between_devices_are_named_and_those_on_the_host_are_not():
    """The only other device of a build without CUDA is `meta`, which has sizes and no values."""
    from rlprof.probes.cuda import attach_copies
    from rlprof.probes.probe import Probe

    before = dict(vars(torch.Tensor))
    with profiled(Probe("torch", {"torch": attach_copies})) as profiler:
        x = torch.ones(2)
        assert x.cpu().to(torch.float64).to("cpu").sum().item() == 2.0
        assert "device_to_host" not in calls(snapshot_of(profiler))
        away = x.to("meta").to(device="meta").to(torch.float64).to(x.new_empty(0, device="meta"))
        with pytest.raises(RuntimeError):
            away.item()
        assert calls(snapshot_of(profiler)) == {"host_to_device": 1, "device_to_host": 1, "startup": 1}
        graphs, breaks, _ = compile_and_count(
            lambda backend: torch.compile(lambda x: x.to(torch.float64).cpu() + 1, backend=backend, fullgraph=True)
        )
        assert len(graphs) == 2
        assert breaks == 0
    assert vars(torch.Tensor) == before
