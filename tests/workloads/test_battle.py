"""Trainings on a real game server, and wrong settings."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest
from click.testing import CliRunner
from sessions import facts_of
from showdown import installed_server
from workload_runs import calls_of, rlprof, scores_of, train_twice

from rlprof.cli.main import cli
from rlprof.errors import RlprofError
from rlprof.session.reader import Session
from rlprof.workloads.battle import install as installing
from rlprof.workloads.battle.install import install
from rlprof.workloads.battle.server import Server, address_of
from rlprof.workloads.battle.settings import BattleSettings

TINY = {"hidden": 32, "max_turns": 12, "iterations": 2, "envs": 8}


@pytest.fixture(scope="session")
def folder():
    return installed_server()


@pytest.fixture(scope="session")
def server(folder):
    server = Server(folder)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


def scores(server, **settings):
    return scores_of("battle", BattleSettings(server=server.address, **(TINY | settings)))


# ---- wrong settings ----


def test_an_address_is_short_or_full():
    whole = "ws://127.0.0.1:8000/showdown/websocket"
    assert address_of("127.0.0.1:8000") == address_of(whole) == whole
    with pytest.raises(RlprofError, match="'8000' is not a server address; write host:port or ws://"):
        address_of("8000")


@pytest.mark.parametrize("program", ["node", "npm"])
def test_without_node_or_npm_one_sentence_names_what_to_install(program, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None if name == program else f"/usr/bin/{name}")
    with pytest.raises(RlprofError, match=f"needs {program}, which is not on the PATH; install Node.js 20 or later"):
        install(tmp_path)


def test_a_failed_installation_gives_its_reason_in_one_sentence(tmp_path, monkeypatch):
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error network is unreachable' >&2\nexit 3\n")
    npm.chmod(0o755)
    monkeypatch.setattr(installing, "find", lambda _: str(npm))
    with pytest.raises(RlprofError, match=r"could not be installed into .*: npm error network is unreachable$"):
        install(tmp_path / "server")


def test_a_missing_server_is_reported_in_one_sentence():
    with pytest.raises(RlprofError, match=r"no player could enter the game server at ws://127\.0\.0\.1:9/showdown"):
        scores_of("battle", BattleSettings(server="127.0.0.1:9", **TINY))


# ---- on the server ----


@pytest.mark.long
def test_a_second_installation_does_nothing_and_trains_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["train", "battle", "--setup", "--server-dir", str(folder)])
    assert done.exit_code == 0
    assert "is already installed in" in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_the_server_listens_on_this_machine_only(server):
    connections = psutil.Process(server.process.pid).net_connections()
    assert {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


@pytest.mark.long
def test_the_server_contacts_no_other_host(folder):
    config = folder / "node_modules/pokemon-showdown/config/config.js"
    script = (
        f"require({json.dumps(str(config))}); require('dns').lookup('example.org', error => console.log(error.message))"
    )
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "this server contacts no other host, so not example.org\n"


STARTS_A_SERVER = """
import signal, sys, time
from pathlib import Path
from rlprof.workloads.battle.server import Server

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
server = Server(Path(sys.argv[1]))
server.wait_until_ready()
print(server.process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_the_server_ends_with_the_process_that_started_it(how, folder):
    command = [sys.executable, "-c", STARTS_A_SERVER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        server = psutil.Process(int(program.stdout.readline()))
        family = [server, *server.children(recursive=True)]
        program.send_signal(how)
        program.wait(10)
        _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive


@pytest.mark.long
@pytest.mark.parametrize("opponent", ["random", "max_damage", "self"])
def test_the_same_seed_plays_the_same_battles_with_batched_inference(opponent, server):
    runs = [scores(server, opponent=opponent, batched_inference=True, envs=3) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0] != scores(server, opponent=opponent, batched_inference=True, envs=3, seed=2)


@pytest.fixture(scope="module")
def trained(server, tmp_path_factory):
    words = [f"{name}={value}" for name, value in (TINY | {"server": server.address}).items()]
    return train_twice("battle", tmp_path_factory.mktemp("battle"), *words, python=("-W", "error"))


@pytest.mark.long
def test_profiling_changes_no_score(trained):
    assert trained.recorded == trained.alone


@pytest.mark.long
def test_steps_and_episodes_are_counted_once(trained):
    counted = trained.facts.progress
    assert counted.steps == trained.steps
    assert counted.episodes == TINY["envs"] * TINY["iterations"]
    assert counted.iterations == TINY["iterations"]


@pytest.mark.long
def test_eight_threads_in_env_step_are_less_than_all_of_the_time(trained):
    """The document's profiler reported 1108 %."""
    breakdown = trained.facts.breakdown
    rows = [row for row in breakdown.rows if row.operation == "env_step"]
    collecting = sum(row.wall_ns for row in breakdown.rows if row.operation == "env_parallel_execution")
    assert sum(row.wall_ns for row in rows) > 2 * collecting
    assert 0 < sum(row.subtree_ledger_ns for row in rows) < collecting


@pytest.mark.long
def test_every_operation_of_the_document_has_its_time_and_little_has_none(trained):
    breakdown, of = trained.facts.breakdown, calls_of(trained.facts)
    steps, updates = trained.steps, TINY["iterations"] * BattleSettings().epochs * 2
    assert of["env_reset"] == TINY["envs"] * TINY["iterations"]
    assert of["env_step"] == of["agent_action_selection"] == of["agent_value_calculation"] == steps
    assert of["env_parallel_execution"] == TINY["iterations"]
    assert of["gradient_calculation"] == of["optimizer_step"] == of["loss_calculation"] == updates
    (unattributed,) = (row for row in breakdown.rows if row.category == "unattributed")
    assert unattributed.ledger_ns < 0.05 * breakdown.wall_ns


@pytest.mark.long
def test_the_documents_command_leaves_its_files(server, tmp_path):
    (tmp_path / "train_config.yml").write_text("hidden: 16\nheads: 2\nmax_turns: 3\nopponent: max_damage\n")
    words = (
        "train battle --device cpu --episodes 10 --profile --profile-name debug_test --flat logs/profiling"
        f" --config train_config.yml --parallel 2 --server {server.address} --breakdown"
    )
    done = rlprof(tmp_path, *words.split())
    (raw,) = (tmp_path / "logs/profiling/raw").iterdir()
    (summary,) = (tmp_path / "logs/profiling/reports").iterdir()
    assert raw.match("debug_test_*.json")
    assert summary.match("debug_test_*_summary.txt")
    (session,) = (tmp_path / "rlprof-runs").glob("debug_test_*")
    with Session(session) as opened:
        assert opened.info.settings["opponent"] == "max_damage"
        assert opened.info.settings["iterations"] == 10
    for title in ("Environment Operations", "Gradient Calculation", "Action Selection"):
        assert title in done.stdout


@pytest.mark.long
def test_a_server_that_dies_ends_the_training_with_a_sentence_and_a_session(folder, tmp_path):
    command = [
        "rlprof", "train", "battle", "--episodes", "1000", "--parallel", "2", "--jsonl", "iterations.jsonl",
        "hidden=16", "heads=2", "max_turns=5", f"server_dir={folder}",
    ]  # fmt: skip
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-m", *command], cwd=tmp_path, text=True, **pipes) as program:
        while not (written := tmp_path / "iterations.jsonl").exists() or not written.stat().st_size:
            assert program.poll() is None
            time.sleep(0.05)
        (server,) = psutil.Process(program.pid).children()
        server.kill()
        assert program.wait(15) == 2
        last = program.stderr.read().splitlines()[-1]
    assert last.startswith("rlprof: the game server at ws://127.0.0.1:")
    assert last.endswith("closed the connection during a battle; check that it still runs, then train again")
    (session,) = (tmp_path / "rlprof-runs").glob("battle_*")
    with Session(session) as opened:
        assert "RlprofError" in opened.end.how
    facts_of(session)


@pytest.mark.long
def test_it_learns(server):
    """It learns to keep its health in the first 25 decisions, which depends less on luck than winning does."""
    more = {"hidden": 128, "learning_rate": 1e-3, "batch_size": 2, "gae_lambda": 0.8, "batched_inference": True}
    learned = scores(server, iterations=12, max_turns=25, **more)
    assert sum(learned[-3:]) / 3 > sum(learned[:3]) / 3 + 0.15
