"""Settings from files, flags and key=value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_type_hints

import click
import pytest

from rlprof.cli.main import main
from rlprof.cli.train.options import given, options_of, spread
from rlprof.errors import RlprofError
from rlprof.workloads.settings import (
    Count,
    Settings,
    all_keys,
    as_words,
    describe,
    make_settings,
    read_config,
    read_overrides,
    setting,
)


@dataclass(frozen=True)
class Trainer:
    batch_size: Count = 64
    """of a gradient step"""
    precise: bool = True
    """or not"""


@dataclass(frozen=True)
class Example(Settings):
    iterations: Count = setting(3, "--rounds")
    """rounds"""
    mode: Literal["rgb", "symbolic"] = "rgb"
    """what is seen"""
    devices: tuple[str, ...] = ("cpu",)
    """where"""
    turbo: bool = False
    """faster"""
    trainer: Trainer = field(default_factory=Trainer)
    """its parts"""

    @property
    def steps_per_iteration(self) -> int:
        return 100


def test_later_layers_win_and_parts_are_merged():
    made = make_settings(
        Example,
        ("file", {"seed": 2, "trainer": {"batch_size": 8, "precise": False}}),
        ("flags", {"seed": 3}),
        ("words", read_overrides(["trainer.batch_size=1_024", "mode=symbolic"])),
    )
    assert (made.seed, made.mode) == (3, "symbolic")
    assert made.trainer == Trainer(batch_size=1024, precise=False)


def test_settings_can_be_written_as_words():
    words = ["seed=5", 'devices=["a","b"]', "turbo=true", "trainer.batch_size=3", 'device="x y"']
    made = make_settings(Example, ("words", read_overrides(words)))
    written = list(as_words(made))
    assert sorted(written) == sorted(words)
    assert make_settings(Example, ("again", read_overrides(written))) == made
    assert not list(as_words(Example()))


def test_a_number_may_have_an_exponent(tmp_path):
    assert read_overrides(["rate=1e-3", "name=e3", "size=2E4"]) == {"rate": 0.001, "name": "e3", "size": 20000.0}
    (tmp_path / "a.yaml").write_text("a: {b: 3e-4}")
    assert read_config(tmp_path / "a.yaml") == {"a": {"b": 0.0003}}


def test_timesteps_decide_over_iterations_and_are_rounded_up():
    assert Example().total_iterations == 3
    assert Example(timesteps=101).total_iterations == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sed=3"], "there is no setting sed; did you mean seed?"),
        (["batch_size=3"], "did you mean trainer.batch_size?"),
        (["trainer.batchsize=3"], "there is no setting trainer.batchsize; did you mean trainer.batch_size?"),
        (["trainer=3"], "trainer has parts: trainer.batch_size, trainer.precise"),
        (["trainer.batch_size=many"], "trainer.batch_size: expected int, got str"),
        (["trainer.batch_size=0"], "trainer.batch_size: expected int >= 1"),
        (["mode=grey"], "mode: invalid enum value 'grey'"),
        (["turbo=3"], "turbo: expected bool, got int"),
        (["seed=1", "seed.x=2"], "seed already has a value"),
        (["seed"], "'seed' is not a setting; write key=value"),
        (["=3"], "is not a setting"),
    ],
)
def test_an_error_is_one_sentence_with_its_place(words, message):
    with pytest.raises(RlprofError) as caught:
        make_settings(Example, (" ".join(words), read_overrides(words)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_may_be_yaml_or_json(tmp_path):
    for name, text in (
        ("a.yaml", "seed: 4\ntrainer:\n  batch_size: 5\n"),
        ("a.json", '{"seed": 4, "trainer": {"batch_size": 5}}'),
    ):
        (tmp_path / name).write_text(text)
        assert read_config(tmp_path / name) == {"seed": 4, "trainer": {"batch_size": 5}}
    (tmp_path / "empty.yml").write_text("")
    assert read_config(tmp_path / "empty.yml") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[1, 2]", "holds a list; write settings"),
        (b"a: [1,", "line 1: the file is neither"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_an_invalid_file_is_reported_with_its_name(tmp_path, text, message):
    (tmp_path / "bad.yaml").write_bytes(text)
    with pytest.raises(RlprofError, match=r"bad\.yaml") as caught:
        read_config(tmp_path / "bad.yaml")
    assert message in str(caught.value)


WRONG = [
    ("petri", "minibatch=1000", "minibatch=1000: a batch has only 640 frames"),
    ("petri", "device=cuda:7", "torch has no device 'cuda:7' on this machine; cpu always works"),
    ("ricochet", "board.walls=200", "board.walls=200: a board of 8 x 8 has room for 112"),
    ("ricochet", "board.robots=64", "board.robots=64: a board of 8 x 8 has room for 63"),
    ("ricochet", "board.walls=112", "the first robot cannot move"),
    ("ricochet", "batch_size=255", "batch_size=255 leaves a last batch of one of the 256"),
    ("ricochet", "obs_mode=ascii", "obs_mode: invalid enum value 'ascii'"),
    ("ricochet", "image.cell=2", "image.cell: expected int >= 5"),
    ("ricochet", "network.strides=[1,2,3]", "network.strides: expected array of length 2"),
    ("distill", "trainer.batch_size=100", "a batch must consist of whole segments of bptt=32 steps; try 128"),
    ("distill", "trainer.batch_size=2048", "trainer.batch_size=2048: a rollout has only 1024 agent steps"),
    ("distill", "policy.heads=5", "policy.width=64 cannot be divided into policy.heads=5 heads; try 65"),
    ("distill", "seed=-1", "seed=-1: a seed must not be negative"),
    ("distill", "agents=41 base_missions=extractor_hub_14", "agents=41: extractor_hub_14 has room for 40"),
    ("distill", "trainer.profiler.active_steps=0", "trainer.profiler.active_steps: expected int >= 1"),
    ("distill", "evaluator.interval=2", "no setting evaluator.interval; did you mean evaluator.epoch_interval?"),
    ("morph", "images.size=7", "images.size: expected int >= 8"),
    ("morph", "num_workers=-1", "num_workers: expected int >= 0"),
    ("morph", "host=3", "host has parts: host.channels"),
    ("morph", "hidden=3", "did you mean controller.hidden?"),
    ("morph", "--devices cpu gpu", "torch has no device 'gpu' on this machine; cpu always works"),
    ("morph", "--telemetry-level debug", "writes nothing without --telemetry-dir"),
    ("morph", f"--telemetry-dir {__file__}", "cannot be written to"),
    ("battle", "--opponent nobody", "'nobody' is not one of 'random', 'max_damage', 'self'"),
    ("battle", "--parallel 0", "envs: expected int >= 1"),
    ("battle", "hidden=100 heads=8", "hidden=100 is not a multiple of heads=8; use one that is"),
    ("battle", "--server-dir nowhere", "is not installed in"),
    ("battle", "--server-dir nowhere", "run rlprof train battle --setup --server-dir"),
    ("battle", "--episode_s 3", "No such option"),
]


@pytest.mark.filterwarnings("ignore")  # TorchRL warns of itself when it is imported
@pytest.mark.parametrize(("workload", "words", "problem"), WRONG)
def test_wrong_settings_are_reported_in_one_sentence(workload, words, problem, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    profile = [] if workload == "battle" else ["--no-profile"]  # battle checks its settings before the recording begins
    with pytest.raises(SystemExit) as ended:
        main(["train", workload, *profile, *words.split()])
    errors = capsys.readouterr().err
    assert ended.value.code == 2
    assert problem in errors
    assert "Usage:" in errors or errors.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_every_field_of_every_workload_has_a_help_text():
    from rlprof.workloads import WORKLOADS, find_workload

    for name in WORKLOADS:
        settings = find_workload(name).settings
        for key in all_keys(settings):
            *path, last = key.split(".")
            owner = settings
            for part in path:
                owner = get_type_hints(owner)[part]
            assert describe(owner).get(last), f"{name}: {key}"
        assert make_settings(settings) == settings()


def parse(args):
    options = options_of(Example)
    command = click.Command("example", params=options)
    return given(Example, command.make_context("example", spread(options, args)).params)


def test_flags_that_were_not_given_change_nothing():
    assert parse([]) == {}


def test_flags_are_made_from_the_fields():
    flags = parse(["--rounds", "5", "--mode", "symbolic", "--turbo", "--devices", "cuda:0", "cuda:1", "--seed", "7"])
    assert flags == {
        "iterations": 5, "mode": "symbolic", "turbo": True, "devices": ["cuda:0", "cuda:1"], "seed": 7,
    }  # fmt: skip
    assert parse(["--no-turbo"]) == {"turbo": False}
    assert parse(["--devices", "a", "--devices", "b"]) == {"devices": ["a", "b"]}
    assert make_settings(Example, ("the flags", flags)).devices == ("cuda:0", "cuda:1")
