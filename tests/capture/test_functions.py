"""Profiles of Python functions: in a whole run, and only inside a phase."""

from __future__ import annotations

import pstats

import pytest
from test_torch_capture import HANDWRITTEN, run, session_of

from rlprof.session.reader import Session


def functions_in(path):
    return {name for _, _, name in pstats.Stats(str(path)).stats}


@pytest.mark.long
def test_a_whole_run(tmp_path):
    run(tmp_path, HANDWRITTEN, "--cprofile")
    folder = session_of(tmp_path) / "functions"
    assert {path.name for path in folder.iterdir()} == {"whole.pstats", "whole.txt"}
    assert {"step", "backward", "linear"} & functions_in(folder / "whole.pstats")
    text = (folder / "whole.txt").read_text()
    assert "Ordered by: cumulative time" in text
    assert "due to restriction <50>" in text
    with Session(session_of(tmp_path)) as session:
        assert {artifact.path for artifact in session.artifacts()} == {"functions/whole.pstats", "functions/whole.txt"}


@pytest.mark.long
def test_only_inside_a_phase(tmp_path):
    run(tmp_path, HANDWRITTEN, "--cprofile", "--phase", "env_step", "--phase", "optimizer_step")
    folder = session_of(tmp_path) / "functions"
    inside, other = (functions_in(folder / f"{name}.pstats") for name in ("env_step", "optimizer_step"))
    assert "step" in inside
    assert "backward" not in inside | other
    stats = pstats.Stats(str(folder / "env_step.pstats"))
    calls = {key[2]: value[1] for key, value in stats.stats.items() if "cartpole" in key[0]}
    # Each environment's own, of every step of the vector; one that had ended is reset in its next.
    assert calls["step"] + calls["reset"] == 10 * 32 * 4


@pytest.mark.long
def test_samples(tmp_path):
    run(tmp_path, HANDWRITTEN, "--sample", "--phase", "rollout")
    folder = session_of(tmp_path) / "functions"
    assert {path.name for path in folder.iterdir()} == {"rollout.sampled.txt", "rollout.sampled.html"}
    text = (folder / "rollout.sampled.txt").read_text()
    assert "step" in text
    assert "backward" not in text


def test_wrong_use(tmp_path):
    assert "--phase needs --cprofile or --sample" in run(tmp_path, HANDWRITTEN, "--phase", "x", check=False).stderr
    assert "Choose one of them" in run(tmp_path, HANDWRITTEN, "--cprofile", "--sample", check=False).stderr
