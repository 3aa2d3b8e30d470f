"""Likely secrets are masked before they are recorded, and everything else stays unchanged."""

from __future__ import annotations

import json
import os
import time
from collections import namedtuple
from dataclasses import dataclass

import pytest
from sessions import rlprof

from rlprof.errors import RlprofError
from rlprof.experiment.arm import Arm, ArmError
from rlprof.experiment.slowdowns import command_of
from rlprof.session.info import described, gather
from rlprof.session.secrets import MASKED, mask_command, mask_line, mask_setting, mask_text

HEX40 = "0123456789abcdef0123456789abcdef01234567"
RANDOM = "q7Zx9KpL2vRt5WmN8sYb3HcD6fGj1QaE"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.s5vXyZ_abcdefgh"

SECRET_COMMANDS = [
    # The whole command, and what must not be in the masked one.
    ("--password=hunter2", "hunter2"),
    ("--password hunter2", "hunter2"),
    ("--password -hunter2", "hunter2"),
    ("--password 12345678", "12345678"),
    ("--db.password hunter2", "hunter2"),
    ("--dbPassword hunter2", "hunter2"),
    ("-password hunter2", "hunter2"),
    ("--passwd hunter2", "hunter2"),
    ("--db-pass hunter2", "hunter2"),
    ("PGPASSWORD=hunter2", "hunter2"),
    ("--api-key sk-abc", "sk-abc"),
    ("--api_key=sk-abc", "sk-abc"),
    ("--apikey abc", "abc"),
    ("--key opensesame", "opensesame"),
    ("--token opensesame", "opensesame"),
    ("--hf-token opensesame", "opensesame"),
    ("--auth user-and-word", "user-and-word"),
    ("--client-secret opensesame", "opensesame"),
    ("--credentials opensesame", "opensesame"),
    ("WANDB_API_KEY=opensesame", "opensesame"),
    ("AWS_SECRET_ACCESS_KEY=opensesame", "opensesame"),
    ("+logger.wandb.api_key=opensesame", "opensesame"),
    ("logger={api_key:opensesame,project:x}", "opensesame"),
    ("""'{"password": "open sesame", "x": 1}'""", "sesame"),
    ("--remote postgres://user:hunter2@host/db", "hunter2"),
    ("--remote postgres://user:hunt@er2@host/db", "er2"),
    ("redis://:hunter2@host:6379", "hunter2"),
    ("--remote user:hunter2@db.example.org", "hunter2"),
    ("--url https://host/x?api_key=opensesame&y=2", "opensesame"),
    ("--url https://host/x?token=opensesame", "opensesame"),
    ("-H 'Authorization: Bearer opensesame'", "opensesame"),
    ("-H 'X-Api-Key: opensesame'", "opensesame"),
    ("--token-source=a8f7e6d5c4b3a2918f7e6d5c", "a8f7e6d5c4b3a2918f7e6d5c"),
    ("train.py sk-proj-abc123DEF456ghi789", "abc123"),
    ("--x ghp_abcdefghijklmnop1234567890abcdefghij", "ghp_abc"),
    ("--x hf_abcdefghijklmnopqrstuvwxyz", "hf_abc"),
    ("--x AKIAIOSFODNN7EXAMPLE", "AKIA"),
    (f"--x {JWT}", "eyJ"),
    (f"--x {HEX40}", HEX40),
    (f"--x {RANDOM}", RANDOM),
    (f"{RANDOM}", RANDOM),
    ("-c 'import wandb; wandb.login(api_key=\"opensesame\")'", "opensesame"),
]

HARMLESS = [
    "python train.py --seed 1 --lr 3e-4",
    "--num-tokens 200",
    "--num-tokens=200",
    "--max-new-tokens 4096",
    "--tokens 1000000",
    "--key-frames 20",
    "--keyframes=20",
    "--key 42",
    "--prng-key 0",
    "--obs-key image",
    "--sort_key reward",
    "--pad-token '<pad>'",
    "--eos_token=END",
    "--token-dim 64",
    "--tokenizer bert-base-uncased",
    "--use-auth --seed 3",
    "--no-auth train.py",
    "--auth-method basic",
    "--forward-pass full",
    "--passes 3",
    "--secret-name my-secret-in-the-vault",
    "--password-file /run/secrets/db",
    "--author jane",
    "--monkey banana",
    "--keyboard qwerty",
    "--turkey-env CartPole-v1",
    "--revision 0123456789abcdef0123456789abcdef01234567",
    "--run-id 550e8400-e29b-41d4-a716-446655440000",
    "--env ALE/MontezumaRevengeNoFrameskip-v4",
    "--name PPO-CartPole-v1-seed3-2024-05-01-lr3e-4-run7",
    "--name PPO_HalfCheetah-v5__train__1__1718000000__bigger_net",
    "--checkpoint /data/runs/2024-05-01_12-30-00/checkpoints/model_1000000_steps.zip",
    "--logdir s3://bucket/runs/PPO-2024-05-01T12:30:00Z/a1b2c3",
    "--url http://localhost:8080/metrics@v2",
    "git@github.com:org/repo.git",
    "--image registry.example.org/train:v2@sha256:abc",
    "sk-learn-pipeline",
    "-c 'print(sorted(x, key=len))'",
    "--device cuda:0 --gpu NVIDIA-A100-SXM4-80GB",
    "env.num_envs=64 algo.gamma=0.99 +trainer.max_steps=1000",
    "--activation relu --net-arch 256,256 --clip-range 0.2",
]


@pytest.mark.parametrize(("line", "secret"), SECRET_COMMANDS)
def test_a_secret_on_the_command_line_is_masked(line, secret):
    masked = mask_line(line)
    assert secret not in masked
    assert MASKED in masked
    assert mask_line(masked) == masked, "masking twice changes nothing"


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_words_stay_unchanged(line):
    assert mask_line(line) == line


def test_the_rest_of_the_command_line_stays():
    line = "python train.py --password=hunter2 --api-key sk-abc --seed 1 --remote redis://me:pw@host:1/x"
    assert mask_command(line.split()) == (
        "python", "train.py", "--password=***", "--api-key", "***", "--seed", "1", "--remote", "redis://me:***@host:1/x",
    )  # fmt: skip


@dataclass
class Config:
    password: str = "hunter2"
    lr: float = 0.1


Pair = namedtuple("Pair", ["token", "steps"])


@pytest.mark.parametrize(
    ("name", "value", "masked"),
    [
        ("wandb", {"api_key": "opensesame", "project": "x"}, {"api_key": "***", "project": "x"}),
        ("runs", [{"env": {"password": 1234}}, 5], [{"env": {"password": "***"}}, 5]),
        ("tokens", 200, 200),
        ("token", 200, 200),
        ("auth", True, True),
        ("password", None, None),
        ("hidden", (256, 256), (256, 256)),
        ("config", Config(), f"{Config.__qualname__}(password='***', lr=0.1)"),
        ("pair", Pair("opensesame", 3), "Pair(token='***', steps=3)"),
        ("remote", "mysql://me:hunter2@host", "mysql://me:***@host"),
        ("key_frames", "1,2,3", "1,2,3"),
    ],
)
def test_nested_settings_are_masked(name, value, masked):
    assert mask_setting(name, value) == masked


def test_a_session_gets_its_settings_masked():
    info = gather("run", 0, "c", {"wandb": {"api_key": "opensesame"}, "lr": 0.1})
    assert info.settings == {"wandb": "{'api_key': '***'}", "lr": 0.1}
    assert described(info, None, {"password": "hunter2"}).settings["password"] == MASKED
    circle: dict = {}
    circle["me"] = circle
    assert gather("run", 0, "c", {"circle": circle}).settings == {"circle": "a dict"}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("KeyError: 'obs'", "KeyError: 'obs'"),
        ("ValueError: unknown key: obs", "ValueError: unknown key: obs"),
        ("ValueError: 3 tokens: a b c", "ValueError: 3 tokens: a b c"),
        ("OSError: ftp://me:hunter2@host failed", "OSError: ftp://me:***@host failed"),
        ("ValueError: login with password=hunter2 failed", "ValueError: login with password=*** failed"),
    ],
)
def test_an_error_keeps_its_words_but_not_its_secrets(text, masked):
    assert mask_text(text) == masked


@pytest.mark.parametrize("unit", ["key-", "pass.", "a.", "sk-", "://:", "password", "password: ", "SG.abc", " key\t"])
def test_masking_takes_time_in_proportion_to_the_text(unit):
    """Measures CPU time. A quadratic search would take a minute here."""
    before = time.process_time()
    mask_text(unit * (100_000 // len(unit)))
    assert time.process_time() - before < 10


SCRIPT = """
import rlprof
with rlprof.profile("env_step"):
    pass
raise SystemExit("cannot log in as redis://me:hunter4@host")
"""


@pytest.mark.long
def test_no_file_of_a_recorded_run_has_the_secret(tmp_path):
    """The bytes of all files of the run and its reports."""
    (tmp_path / "train.py").write_text(SCRIPT)
    runs = tmp_path / "runs"
    environment = {**os.environ, "LD_PRELOAD": "", "XLA_FLAGS": "--password=hunter3"}
    secrets = ["--password=hunter2", "--api-key", "sk-abc", f"token={RANDOM}"]
    rlprof("run", "--dir", runs, tmp_path / "train.py", *secrets, env=environment, code=None)
    (folder,) = runs.iterdir()
    for name in ("report.html", "report.json", "report.txt", "report.md", "report.csv"):
        rlprof("report", folder, "-o", folder / name)
    for to in ("chrome", "otlp-json"):
        rlprof("export", folder, "--to", to)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 8
    for path in files:
        content = path.read_bytes()
        for secret in (b"hunter2", b"hunter3", b"hunter4", b"sk-abc", RANDOM.encode()):
            assert secret not in content, path.name
    shown = json.loads((folder / "report.json").read_text())["facts"]["session"]["command"]
    assert shown[-4:] == ["--password=***", "--api-key", "***", "token=***"]


def test_a_masked_command_is_not_run_again():
    with pytest.raises(RlprofError, match=r"secret.*--command"):
        command_of(("python", "train.py", "--password=***"))


def test_a_comparison_names_a_training_without_its_secret(tmp_path):
    with Arm("A", f"run {tmp_path}/nosuch.py --password=hunter2", tmp_path) as arm:
        with pytest.raises(ArmError) as failed:
            arm.begin()
    assert str(failed.value).startswith(f"A (run {tmp_path}/nosuch.py")
    assert "hunter2" not in str(failed.value)
