"""A host: the small network that is trained, and that can grow and shrink while it is trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from rlprof import profile
from rlprof.workloads.morph.images import CHANNELS, Batch
from rlprof.workloads.morph.settings import BLOCKS, MorphSettings


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        # A host lives for a few batches only, so running statistics would lag behind.
        self.norm = nn.BatchNorm2d(outputs, track_running_stats=False)
        self.branch: nn.Conv2d | None = None

    def forward(self, image: Tensor) -> Tensor:
        seen = functional.max_pool2d(functional.relu(self.norm(self.convolution(image))), 2)
        return seen if self.branch is None else functional.relu(seen + self.branch(seen))


class HostNetwork(nn.Module):
    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        width = CHANNELS
        for number in range(BLOCKS):
            self.blocks.append(Block(width, channels * 2**number))
            self.add_module(f"block{number}", self.blocks[number])
            width = channels * 2**number
        self.classify = nn.Linear(width, classes)

    def forward(self, image: Tensor) -> Tensor:
        for block in self.blocks:
            image = block(image)
        scores: Tensor = self.classify(image.mean((2, 3)))
        return scores


class Host:
    def __init__(self, settings: MorphSettings, device: torch.device, seed: int) -> None:
        with torch.random.fork_rng([]):  # so that making a host does not change the controller's sampling
            torch.default_generator.manual_seed(seed)
            self.network = HostNetwork(settings.host.channels, settings.images.classes).to(device)
        self.device = device
        self.optimizer = torch.optim.SGD(
            self.network.parameters(), settings.host.learning_rate, momentum=settings.host.momentum
        )

    @property
    def grown(self) -> int:
        """Number of branches. They grow from the first block to the last, and are pruned in reverse."""
        return len(self.optimizer.param_groups) - 1

    def grow(self) -> None:
        """Add a branch that starts at zero, so that the network's output does not change."""
        if self.grown == BLOCKS:
            return
        block = self.network.blocks[self.grown]
        width = block.convolution.out_channels
        branch: nn.Conv2d = nn.utils.skip_init(  # type: ignore[no-untyped-call]  # as torch has it
            nn.Conv2d, width, width, 3, padding=1, device=self.device
        )
        for parameter in branch.parameters():
            nn.init.zeros_(parameter)
        block.branch = branch
        self.optimizer.add_param_group({"params": list(branch.parameters())})

    def prune(self) -> None:
        if not self.grown:
            return
        for parameter in self.optimizer.param_groups.pop()["params"]:
            self.optimizer.state.pop(parameter, None)
        self.network.blocks[self.grown].branch = None

    def learn(self, batch: Batch) -> Tensor:
        """Learn from one batch. Returns loss and accuracy, still being computed on the device."""
        with profile("host_forward", device=True):
            scores = self.network(batch[0])
            loss = functional.cross_entropy(scores, batch[1])
        with profile("host_backward", device=True):
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own has no types
        with profile("host_optimizer_step", device=True):
            self.optimizer.step()
        return torch.stack((loss.detach(), _accuracy(scores, batch[1])))

    @torch.no_grad()
    def judge(self, batch: Batch) -> Tensor:
        scores = self.network(batch[0])
        return torch.stack((functional.cross_entropy(scores, batch[1]), _accuracy(scores, batch[1])))

    @torch.no_grad()
    def statistics(self) -> Tensor:
        """Per layer: mean size and spread of the weights, and the norm of their last gradient."""
        weights = [*(block.convolution.weight for block in self.network.blocks), self.network.classify.weight]
        return torch.stack(
            [weight.abs().mean() for weight in weights]
            + [weight.std() for weight in weights]
            + [weight.new_zeros(()) if weight.grad is None else weight.grad.norm() for weight in weights]
        )


def _accuracy(scores: Tensor, labels: Tensor) -> Tensor:
    return (scores.argmax(-1) == labels).float().mean()
