"""Under torch.compile a span is a no-op that Dynamo traces through, in one graph, with the same result."""

from __future__ import annotations

import pytest
import torch

from rlprof import Profiler

# Dynamo warns about its own internals. What it reports about rlprof comes as an error.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(params=["c", "python"])
def profiler(request):
    torch._dynamo.reset()
    profiler = Profiler(request.param)
    profiler.enable()
    yield profiler
    profiler.disable()


def compiled(function):
    """Compile in one graph. Returns the compiled function and a list that gets each graph."""
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph

    return torch.compile(function, backend=backend, fullgraph=True), graphs


def check_one_graph(function, *arguments):
    fast, graphs = compiled(function)
    for _ in range(3):
        assert torch.equal(fast(*arguments), function(*arguments))
    assert len(graphs) == 1


def test_a_with_block_is_traced_through(profiler):
    def step(x):
        with profiler.profile("policy_forward"):
            x = x + 1
            with profiler.profile("inner", wait=True):
                return x * 2

    fast, graphs = compiled(step)
    assert torch.equal(fast(torch.ones(2)), torch.full((2,), 4.0))
    assert len(graphs) == 1
    assert profiler.snapshot().accounts == [], "nothing is recorded inside a graph"
    step(torch.ones(2))
    assert profiler.snapshot().account("inner").calls == 1


def test_a_decorated_function_is_traced_through(profiler):
    @profiler.profile_function("loss")
    def loss(x, scale=3.0):
        return (x * scale).sum()

    check_one_graph(lambda x: loss(x) + loss(x, scale=1.0), torch.ones(3))
    check_one_graph(loss, torch.ones(3))


def test_decorated_methods_keep_their_arguments(profiler):
    class Agent:
        bias = 5

        @profiler.profile_function("act")
        def act(self, x=None, y=None):
            return (0 if x is None else x) + self.bias + (0 if y is None else y)

        @profiler.profile_function("static")
        @staticmethod
        def static(x):
            return x * 3

        @profiler.profile_function("class")
        @classmethod
        def of_class(cls, x):
            return x + cls.bias

    agent = Agent()
    check_one_graph(lambda x: agent.act(x) + agent.act(y=x) + agent.static(x) + agent.of_class(x), torch.ones(3))


def test_a_module_with_a_decorated_forward_compiles(profiler):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)

        @profiler.profile_function("policy_forward")
        def forward(self, x):
            with profiler.profile("layer"):
                return self.layer(x)

    net = Net()
    check_one_graph(net, torch.ones(4, 3))
    net(torch.ones(4, 3))
    assert profiler.snapshot().account("policy_forward").calls == profiler.snapshot().account("layer").calls > 0


def test_a_span_round_a_compiled_call_is_recorded(profiler):
    fast, _ = compiled(lambda x: x + 1)
    for _ in range(3):
        with profiler.profile("update"):
            fast(torch.ones(2))
    assert profiler.snapshot().account("update").calls == 3


def test_gradients_are_bit_for_bit_the_same_with_and_without_spans(profiler):
    def plain(x):
        return (x.sin() * x).sum()

    def spanned(x):
        with profiler.profile("loss"):
            return plain(x)

    gradients = []
    for loss in (plain, spanned):
        x = torch.linspace(0, 1, 7, requires_grad=True)
        compiled(loss)[0](x).backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)
