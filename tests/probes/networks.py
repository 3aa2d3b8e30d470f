"""Networks for tests of torch's probe."""

from __future__ import annotations

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

    def forward(self, x):
        return self.layers(x).sum(-1)


class Broken(Net):
    """Its graph has a break, after which a module is called outside of any graph."""

    def forward(self, x):
        x = self.layers[0](x)
        torch._dynamo.graph_break()
        return self.layers[2](self.layers[1](x))


class Calling(nn.Sequential):
    """Calling it is more than what calling a module is."""

    def __call__(self, x):
        return super().__call__(x) + 1


class Own(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})

    def step(self, closure=None):
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.sub_(0.1 * parameter.grad)
        return loss


def compile_and_count(make, steps=3):
    """What Dynamo makes of it: the graphs' code, their number, breaks and results, over calls of two batch sizes."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph.code)
        return graph

    torch.manual_seed(0)
    function = make(backend)
    results = [function(torch.full((size, 3), 0.5)) for size in (4, 4, 7)[:steps]]
    breaks = dict(torch._dynamo.utils.counters["graph_break"])
    return graphs, len(breaks), results
