"""Networks that are called row by row or time step by time step where one call would do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import at, given, share, train, with_lines, work

from rlprof.analysis.advice.forward_one_by_one import forward_one_by_one

RNN = ("torch.nn.modules.module:Module._call_impl", "torch.nn.modules.rnn:GRU.forward")


def learning(calls, forward, backward):
    """Per iteration some forward passes that take `forward` seconds together, and one optimizer step."""

    def program(profiler):
        for _ in range(20):
            profiler.iteration()
            work(profiler, "env_step", 0.02)
            profiler.add_steps(64)
            with profiler.profile("update"):
                for _ in range(calls):
                    work(profiler, "loss_forward", forward / calls)
                work(profiler, "backward", backward)
                work(profiler, "optimizer_step", 0.001)

    return program


def test_many_short_forward_passes_per_optimizer_step_are_found(tmp_path):
    finding = given(forward_one_by_one(train(tmp_path, learning(64, 0.02, 0.005))), "forward_one_by_one", share=20 / 46)
    assert "A network is called 64 times per optimizer step" in finding.cause
    assert "backward" not in finding.cause


def test_a_long_backward_pass_goes_back_through_them(tmp_path):
    facts = train(tmp_path, learning(64, 0.02, 0.03))
    finding = given(forward_one_by_one(facts), "forward_one_by_one")
    assert finding.cause.endswith(f", and much of the {100 * share(facts, 'backward'):.1f}% in backward passes.")
    assert finding.gain.high > 71 / 51


def test_a_few_forward_passes_are_usual(tmp_path):
    assert forward_one_by_one(train(tmp_path, learning(8, 0.02, 0.005))) is None


@pytest.mark.parametrize(("below", "loop", "found"), [(RNN, True, True), (RNN, False, False), (RNN[:1], True, False)])
def test_a_recurrent_layer_in_a_loop_of_a_forward_pass_is_found(tmp_path, below, loop, found):
    line = replace(at("net.py:31", "output, state = self.gru(row[None], state)", 0.9, "Net.forward", below), loop=loop)
    facts = with_lines(train(tmp_path, learning(1, 0.02, 0.005)), {"loss_forward": [line]})
    finding = forward_one_by_one(facts)
    assert (finding is not None) is found
    if finding is not None:
        cause = given(finding, "forward_one_by_one", share=20 / 46).cause
        assert cause.startswith("net.py:31 in Net.forward() calls a recurrent layer for one time step after the other")
