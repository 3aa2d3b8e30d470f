"""petri as a training: it learns, rlprof changes nothing, and its components are its time."""

from __future__ import annotations

import warnings

import pytest
from workload_runs import train_twice

from rlprof.analysis.components import components
from rlprof.errors import RlprofError
from rlprof.workloads.petri import COMPONENTS
from rlprof.workloads.petri.settings import PetriSettings
from rlprof.workloads.progress import Progress
from rlprof.workloads.settings import make_settings, read_overrides


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    words = ("iterations=8", "minibatch=160", "learning_rate=0.001", "--", "turbo=false", "iterations=3")
    return train_twice("petri", tmp_path_factory.mktemp("petri"), *words)


@pytest.mark.long
def test_it_learns(trained):
    first, *_, last = trained.alone
    assert first < 0 < last


@pytest.mark.long
def test_the_components_of_the_document_are_all_there_and_sum_to_the_time(trained):
    found = components(trained.facts.breakdown, COMPONENTS)
    found.check()
    times = {(line.depth, line.title): line.ledger_ns for line in found.lines}
    for title in ("Data Collection", "GAE", "Replay Buffer", "Training Loop", "TensorDict Ops"):
        assert times[0, title] > 0, title
    for title in (
        "Env Step",
        "Policy Forward",
        "Env Reset",
        "TensorDict and framework",
        "Loss",
        "Backward",
        "Optimizer",
    ):
        assert times[1, title] > 0, title
    assert "Everything else" not in {title for _, title in times}


@pytest.mark.long
def test_neither_recording_nor_turbo_changes_a_return(trained):
    trained.check(steps=8 * 640, iterations=8)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["minibatch=1000"], "minibatch=1000: a batch has only 640 frames"),
        (["device=cuda:7"], "torch has no device 'cuda:7' on this machine; cpu always works"),
    ],
)
def test_settings_that_cannot_be_trained_are_refused_in_one_sentence(words, said):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchRL warns of itself when it is imported
        from rlprof.workloads.petri.training import train
    with pytest.raises(RlprofError, match=said):
        train(make_settings(PetriSettings, ("words", read_overrides(words))), Progress("petri", "", show=False))
