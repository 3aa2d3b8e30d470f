"""The encoder of observations, and the ConvLSTM."""

from __future__ import annotations

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from rlprof.workloads.ricochet.settings import NetworkSettings

States = tuple[Tensor, ...]
"""Hidden and cell states: layers x sequences x size of one state."""


class Encoder(BaseFeaturesExtractor):
    """Two convolutions and a mean over each cell of the board: channels x cells x cells. Takes raw observations and
    scales them."""

    def __init__(self, observation_space: spaces.Box, network: NetworkSettings, board_size: int) -> None:
        planes, rows, columns = observation_space.shape
        first, second = network.encoder_channels
        super().__init__(observation_space, second * board_size**2)
        # Planes already have one pixel per cell.
        strides = network.strides if rows > board_size else (1, 1)
        self.convolutions = nn.Sequential(
            nn.Conv2d(planes + 1, first, 3, strides[0], padding=1),
            nn.ReLU(),
            nn.Conv2d(first, second, 3, strides[1], padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(board_size),
        )
        self._brightest = brightest = int(observation_space.high.max())
        boundary = torch.full((rows, columns), float(brightest))
        boundary[1:-1, 1:-1] = 0
        self.boundary: Tensor
        self.register_buffer("boundary", boundary, persistent=False)

    def mark_boundary(self, observations: Tensor) -> Tensor:
        """Add a plane that is bright at the edges, which convolutions cannot recognise by themselves."""
        plane = self.boundary.to(observations.dtype).expand(len(observations), 1, -1, -1)
        return torch.cat((observations, plane), 1)

    def encode(self, marked: Tensor) -> Tensor:
        # With so few channels, convolutions are faster if the channels of a pixel are side by side.
        bright = marked.to(torch.float32, memory_format=torch.channels_last).div_(self._brightest)
        cells: Tensor = self.convolutions(bright)
        return cells

    def forward(self, observations: Tensor) -> Tensor:
        return self.encode(self.mark_boundary(observations)).flatten(1)


class ConvLstm(nn.Module):
    """An LSTM whose states are images and whose weights are convolutions. For RecurrentPPO it looks like an nn.LSTM,
    with flat states."""

    def __init__(self, inputs: int, channels: int, layers: int, size: int) -> None:
        super().__init__()
        self.num_layers = layers
        self.hidden_size = channels * size**2
        self._shape = (channels, size, size)
        self.layers = nn.ModuleList(
            ConvLstmLayer(inputs if layer == 0 else channels, channels) for layer in range(layers)
        )

    def forward(self, cells: Tensor, states: States, starts: Tensor) -> tuple[Tensor, States]:
        """cells: steps x sequences x channels x rows x columns. starts: 1 where an episode begins, steps x
        sequences."""
        hidden, cell = (state.reshape(*state.shape[:-1], *self._shape) for state in states)
        ends = []
        for number, layer in enumerate(self.layers):
            cells, end = layer(cells, (hidden[number], cell[number]), starts)
            ends.append(end)
        last_hidden, last_cell = (torch.stack(parts).flatten(2) for parts in zip(*ends))
        return cells, (last_hidden, last_cell)


class ConvLstmLayer(nn.Module):
    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__()
        self._channels = channels
        self.of_input = nn.Conv2d(inputs, 4 * channels, 3, padding=1)
        self.of_hidden = nn.Conv2d(channels, 4 * channels, 3, padding=1, bias=False)

    def forward(self, cells: Tensor, state: States, starts: Tensor) -> tuple[Tensor, States]:
        hidden, cell = state
        # Everything that does not depend on the step before is computed for all steps at once.
        gates_of_input = self.of_input(cells.flatten(0, 1)).unflatten(0, cells.shape[:2])
        keeps = (1 - starts)[..., None, None, None]
        outputs = []
        for gates, keep, any_starts in zip(gates_of_input, keeps, starts.any(1).tolist()):
            if any_starts:
                hidden, cell = keep * hidden, keep * cell
            opening, new = (gates + self.of_hidden(hidden)).split((3 * self._channels, self._channels), dim=1)
            enter, stay, leave = opening.sigmoid().chunk(3, dim=1)
            cell = stay * cell + enter * new.tanh()
            hidden = leave * cell.tanh()
            outputs.append(hidden)
        return torch.stack(outputs), (hidden, cell)
