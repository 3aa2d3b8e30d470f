"""Policies of RecurrentPPO: actor and critic have an LSTM each, or share a ConvLSTM."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from rlprof import profile
from rlprof.workloads.ricochet.network import ConvLstm, Encoder, States
from rlprof.workloads.ricochet.settings import NetworkSettings


class LstmPolicy(RecurrentActorCriticPolicy):
    def forward(  # type: ignore[override]  # like all recurrent policies, it takes states
        self, obs: Tensor, lstm_states: RNNStates, episode_starts: Tensor, deterministic: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, RNNStates]:
        with profile("recurrent_policy_forward", track_memory=True):
            return super().forward(obs, lstm_states, episode_starts, deterministic)


class ConvLstmPolicy(RecurrentActorCriticPolicy):
    features_extractor: Encoder

    def __init__(
        self,
        observation_space: spaces.Box,
        action_space: spaces.Discrete[Any],
        lr_schedule: Schedule,
        *,
        network: NetworkSettings,
        board_size: int,
        **options: Any,
    ) -> None:
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            features_extractor_class=Encoder,
            features_extractor_kwargs={"network": network, "board_size": board_size},
            lstm_hidden_size=network.features,
            shared_lstm=True,
            enable_critic_lstm=False,
            **options,
        )
        encoded = network.encoder_channels[1]
        memory = ConvLstm(encoded, network.channels, network.layers, board_size)
        self.lstm_actor = memory  # type: ignore[assignment]  # used like the nn.LSTM that it replaces
        self.lstm_hidden_state_shape = (memory.num_layers, 1, memory.hidden_size)
        self.skip = nn.Conv2d(encoded, network.channels, 1)
        self.projection = nn.Sequential(
            nn.Linear(2 * network.channels, network.hidden),
            nn.ReLU(),
            nn.Linear(network.hidden, network.features),
            nn.ReLU(),
        )
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]  # the base class of optimizers has no lr

    def forward(  # type: ignore[override]
        self, obs: Tensor, lstm_states: RNNStates, episode_starts: Tensor, deterministic: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, RNNStates]:
        """Actions, values, log probabilities, states."""
        with profile("recurrent_policy_forward", track_memory=True):
            features, states = self._remember(obs, lstm_states.pi, episode_starts)
            with profile("recurrent_policy_action_value"):
                values = self._values(features)
                distribution = self._distribution(features)
                with profile("recurrent_policy_action_sampling"):
                    actions = distribution.get_actions(deterministic=deterministic)
                log_prob = distribution.log_prob(actions)
            return actions, values, log_prob, RNNStates(states, states)

    def evaluate_actions(  # type: ignore[override]
        self, obs: Tensor, actions: Tensor, lstm_states: RNNStates, episode_starts: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Values, log probabilities, entropies."""
        features, _ = self._remember(obs, lstm_states.pi, episode_starts)
        with profile("recurrent_policy_action_value"):
            distribution = self._distribution(features)
            return self._values(features), distribution.log_prob(actions), distribution.entropy()

    def predict_values(  # type: ignore[override]
        self, obs: Tensor, lstm_states: States, episode_starts: Tensor
    ) -> Tensor:
        return self._values(self._remember(obs, lstm_states, episode_starts)[0])

    def get_distribution(  # type: ignore[override]
        self, obs: Tensor, lstm_states: States, episode_starts: Tensor
    ) -> tuple[Distribution, States]:
        features, states = self._remember(obs, lstm_states, episode_starts)
        return self._distribution(features), states

    def _remember(self, obs: Tensor, states: States, episode_starts: Tensor) -> tuple[Tensor, States]:
        """Features of observations, which are sequences of equal length one after the other, and the states after
        them."""
        with profile("recurrent_policy_get_hidden_states"):
            sequences = states[0].shape[1]
            starts = episode_starts.reshape(sequences, -1).T
        with profile("convlstm_forward_pass", track_memory=True):
            with profile("convlstm_boundary_padding"):
                marked = self.features_extractor.mark_boundary(obs)
            with profile("convlstm_conv_encoder"):
                cells = self.features_extractor.encode(marked)
            with profile("convlstm_layers"):
                steps = cells.reshape(sequences, -1, *cells.shape[1:]).transpose(0, 1)
                outputs, states = self.lstm_actor(steps, states, starts)
                outputs = outputs.transpose(0, 1).flatten(0, 1)
            with profile("convlstm_skip_connection"):
                outputs = outputs + self.skip(cells)
            with profile("convlstm_global_pooling"):
                # Few cells hold a robot, so a mean would lose them.
                pooled = torch.cat((outputs.mean((2, 3)), outputs.amax((2, 3))), 1)
            with profile("convlstm_projection"):
                return self.projection(pooled), states

    def _values(self, features: Tensor) -> Tensor:
        values: Tensor = self.value_net(self.mlp_extractor.forward_critic(features))
        return values

    def _distribution(self, features: Tensor) -> Distribution:
        with profile("recurrent_policy_action_dist"):
            return self._get_action_dist_from_latent(self.mlp_extractor.forward_actor(features))
