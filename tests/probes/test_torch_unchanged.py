"""With the torch probe attached, torch's own ways of looking at code see what they would have seen."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest
import torch
from fakes import CORES
from generic_probes import calls, profiled, snapshot_of
from networks import Broken, Calling, Net, Own, compile_and_count
from torch import nn

from rlprof.probes import torch as torch_probe
from rlprof.probes.probe import Probe

# Dynamo warns of its own internals; what rlprof warns of comes as an error.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.filterwarnings("error::rlprof.RlprofWarning")]

PROBE = torch_probe.PROBE


def compiled_module(backend):
    return torch.compile(Net(), backend=backend, fullgraph=True)


def compiled_in_place(backend):
    net = Net()
    net.compile(backend=backend, fullgraph=True)
    return net


def compiled_function(backend):
    net = Net()
    return torch.compile(lambda x: net(x) + net.layers(x).sum(), backend=backend, fullgraph=True)


def compiled_with_a_break(backend):
    return torch.compile(Broken(), backend=backend)


def compiled_update(backend):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def update(x):
        loss = net(x).square().sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return torch.compile(update, backend=backend)


def compiled_step(backend):
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    step = torch.compile(optimizer.step, backend=backend)

    def update(x):
        net(x).square().sum().backward()
        step()
        return net(x).detach()

    return update


@pytest.mark.long
@pytest.mark.parametrize(
    "make",
    [compiled_module, compiled_in_place, compiled_function, compiled_with_a_break, compiled_update, compiled_step],
)
def test_torch_compile_makes_the_same_graphs(make):
    graphs, breaks, results = compile_and_count(make)
    with profiled(PROBE):
        found_graphs, found_breaks, found = compile_and_count(make)
    assert found_graphs == graphs
    assert graphs
    assert found_breaks == breaks
    assert all(torch.equal(a, b) for a, b in zip(results, found, strict=True))


def test_what_was_compiled_before_is_not_compiled_again():
    torch._dynamo.reset()
    graphs = []
    net = Net()
    fast = torch.compile(net, backend=lambda graph, _inputs: graphs.append(graph) or graph, fullgraph=True)
    expected = fast(torch.ones(4, 3))
    with profiled(PROBE) as profiler:
        assert torch.equal(fast(torch.ones(4, 3)), expected)
        assert calls(snapshot_of(profiler)) == {"loss_forward": 1, "startup": 1}
    assert torch.equal(fast(torch.ones(4, 3)), expected)
    assert len(graphs) == 1


def test_scripting_tracing_and_symbolic_tracing_see_the_same_code():
    def looks():
        torch.manual_seed(0)
        net = Net()
        return (
            torch.jit.script(net).code,
            re.sub(r"___torch_mangle_\d+\.", "", str(torch.jit.trace(net, torch.ones(2, 3)).inlined_graph)),
            torch.fx.symbolic_trace(net).code,
        )

    before = looks()
    with profiled(PROBE):
        assert looks() == before


def test_transformed_functions_give_the_same():
    net = Net()
    parameters = dict(net.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(net, parameters, (x,)).sum()

    def gradients():
        return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, torch.ones(4, 1, 3))

    before = gradients()
    with profiled(PROBE):
        found = gradients()
    assert all(torch.equal(before[name], found[name]) for name in before)


def test_modules_are_copied_pickled_subclassed_and_looked_at_as_ever():
    call = nn.Module.__call__
    signature = inspect.signature(Net.forward)
    with profiled(PROBE) as profiler:
        net = Net()
        copies = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
        assert all(torch.equal(net(torch.ones(2, 3)), other(torch.ones(2, 3))) for other in copies)
        assert nn.Module.__call__ is call
        assert net.__call__.__func__ is call
        assert inspect.signature(Net.forward) == signature
        assert vars(net).keys() == vars(copies[0]).keys()

        class Child(Net):
            def __call__(self, x):
                return super().__call__(x) + 1

        assert Child()(torch.ones(2, 3)).shape == (2,)
        assert nn.DataParallel(net)(torch.ones(2, 3)).shape == (2,)
    assert calls(snapshot_of(profiler))["loss_forward"] >= 5


@pytest.mark.parametrize("core", CORES)
def test_a_call_of_ones_own_that_calls_the_modules_is_timed_from_there(core):
    with profiled(PROBE, core=core) as profiler:
        net = Calling(nn.Linear(3, 4), nn.Linear(4, 2))
        for _ in range(3):
            net(torch.ones(2, 3))
    assert calls(snapshot_of(profiler))["loss_forward"] == 3


def test_such_a_call_is_compiled_as_ever():
    with profiled(PROBE):
        net = Calling(nn.Linear(3, 4), nn.Linear(4, 2))
        compiled = torch.compile(lambda x: net(x) * 1, backend="eager", fullgraph=True)
        assert torch.equal(compiled(torch.ones(2, 3)), net(torch.ones(2, 3)))


def test_a_method_that_is_timed_is_compiled_as_ever_where_super_calls_it():
    class Parent(Net):
        def score(self, x):
            return self(x) * 2

    class Child(Parent):
        def score(self, x):
            return super().score(x) + 1

    def attach(_, patches):
        patches.time(Parent, "score", "scoring")

    with profiled(Probe("here", {"torch": attach}), PROBE) as profiler:
        net = Child()
        compiled = torch.compile(net.score, backend="eager", fullgraph=True)
        assert torch.equal(compiled(torch.ones(2, 3)), net.score(torch.ones(2, 3)))
    assert calls(snapshot_of(profiler))["scoring"] == 1


def test_a_forward_that_fails_raises_what_it_raised():
    with profiled(PROBE) as profiler:
        with pytest.raises(RuntimeError, match="shapes"):
            Net()(torch.ones(2, 7))
        assert profiler.ledger.depth() == 0


@pytest.mark.parametrize(
    "arguments",
    [((), {"x": 1}), (({"obs": torch.ones(2, 3)},), {}), (([torch.ones(2)],), {}), ((), {}), ((3.5,), {}), (({},), {})],
)
def test_whatever_a_module_takes_is_passed_on(arguments):
    class Any(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    with profiled(PROBE):
        args, kwargs = Any()(*arguments[0], **arguments[1])
    assert args == arguments[0]
    assert kwargs == arguments[1]


def test_threads_devices_and_random_numbers_are_left_alone():
    state = torch.get_rng_state()
    settings = torch.get_num_threads(), torch.get_num_interop_threads(), torch.is_grad_enabled()
    with profiled(PROBE):
        Net()
        torch.set_rng_state(state)
        Own([nn.Parameter(torch.ones(1))])
        assert torch.equal(torch.get_rng_state(), state)
        assert settings == (torch.get_num_threads(), torch.get_num_interop_threads(), torch.is_grad_enabled())
