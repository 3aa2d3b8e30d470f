"""Battles by hand-made requests, the networks against themselves, and trainings on a real game server."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from click.testing import CliRunner
from poke_env.battle import Battle, Move
from sessions import facts_of
from showdown import installed_server

from rlprof.cli.main import cli
from rlprof.errors import RlprofError
from rlprof.session.reader import Session
from rlprof.workloads.battle import install as installing
from rlprof.workloads.battle.agent import AloneAgent, Choice, Networks, TogetherAgent, sample
from rlprof.workloads.battle.collecting import Played
from rlprof.workloads.battle.environment import at_random, max_damage
from rlprof.workloads.battle.install import install
from rlprof.workloads.battle.observation import ACTIONS, OBSERVATION, choices, damage, observe, worth
from rlprof.workloads.battle.server import Server, address_of
from rlprof.workloads.battle.settings import BattleSettings
from rlprof.workloads.battle.training import advantages_of, batch_of, loss_of, train
from rlprof.workloads.progress import Progress

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
    progress = Progress("battle", "mean return", show=False)
    train(BattleSettings(server=server.address, **(TINY | settings)), progress)
    return progress.scores


# ---- the rules, by hand ----


def pokemon(ident, details, moves, condition="200/200", active=False):
    stats = dict.fromkeys(("atk", "def", "spa", "spd", "spe"), 100)
    return {
        "ident": f"p1: {ident}", "details": details, "condition": condition, "active": active, "stats": stats,
        "moves": moves, "baseAbility": "noability", "item": "", "pokeball": "pokeball", "ability": "noability",
    }  # fmt: skip


PIKACHU = pokemon("Pikachu", "Pikachu, L80", ["thunderbolt", "slam", "thunderwave", "surf"], active=True)
SNORLAX = pokemon("Snorlax", "Snorlax, L70", ["bodyslam", "rest", "earthquake", "selfdestruct"])
GONE = pokemon("Onix", "Onix, L80", ["earthquake", "rockslide", "bodyslam", "explosion"], condition="0 fnt")


def move(id, disabled=False):
    return {"move": id, "id": id, "pp": 10, "maxpp": 16, "target": "normal", "disabled": disabled}


def battle_of(active=None, team=(PIKACHU, SNORLAX, GONE), opponent="Gyarados, L80", **request):
    """A battle in which Pikachu was asked something."""
    battle = Battle("battle-gen1randombattle-1", "me", None, 1)
    battle.player_role = "p1"
    side = {"name": "me", "id": "p1", "pokemon": list(team)}
    asked = {"active": [active or {"moves": [move(id) for id in PIKACHU["moves"]]}], "side": side, "rqid": 1, **request}
    battle.parse_request({name: value for name, value in asked.items() if value is not None})
    battle.parse_message(["", "switch", "p1a: Pikachu", "Pikachu, L80", "200/200"])
    battle.parse_message(["", "switch", f"p2a: {opponent.split(',')[0]}", opponent, "100/100"])
    battle.parse_request({name: value for name, value in asked.items() if value is not None})
    return battle


def test_moves_come_first_then_the_team_in_its_order():
    assert choices(battle_of()) == ["move 1", "move 2", "move 3", "move 4", "", "switch 2", "", "", "", "", ""]


def test_a_disabled_move_may_not_be_chosen():
    active = {"moves": [move("thunderbolt"), move("slam", disabled=True), move("thunderwave"), move("surf")]}
    assert choices(battle_of(active))[:4] == ["move 1", "", "move 3", "move 4"]


def test_the_team_keeps_its_places_when_the_server_lists_it_in_another_order():
    battle = battle_of()
    side = {"name": "me", "id": "p1", "pokemon": [{**SNORLAX, "active": True}, {**PIKACHU, "active": False}, GONE]}
    battle.parse_message(["", "switch", "p1a: Snorlax", "Snorlax, L70", "200/200"])
    battle.parse_request({"active": [{"moves": [move("rest")]}], "side": side, "rqid": 2})
    assert choices(battle)[4:10] == ["switch 2", "", "", "", "", ""]


def test_who_has_fainted_must_be_replaced():
    team = ({**PIKACHU, "condition": "0 fnt"}, SNORLAX, GONE)
    assert [order for order in choices(battle_of(team=team, active=None, forceSwitch=[True])) if order] == ["switch 2"]


@pytest.mark.parametrize("forced", ["recharge", "struggle"])
def test_what_leaves_no_choice_is_the_last_action(forced):
    active = {"moves": [move(forced)], "trapped": True}
    assert choices(battle_of(active)) == [""] * 10 + ["move 1"]


def test_there_are_eleven_actions_and_an_observation_of_one_size():
    battle = battle_of()
    seen = observe(battle, choices(battle))
    assert len(choices(battle)) == ACTIONS == 11
    assert seen.shape == (OBSERVATION,)
    assert np.isfinite(seen).all()


def test_damage_knows_types_and_who_uses_a_move():
    gyarados, onix = battle_of(), battle_of(opponent="Onix, L80")
    pikachu, other = gyarados.active_pokemon, gyarados.opponent_active_pokemon
    bolt, slam, wave = (Move(id, 1) for id in ("thunderbolt", "slam", "thunderwave"))
    strength = pikachu.base_stats["spa"] / other.base_stats["spd"]
    assert damage(bolt, pikachu, other) == pytest.approx(0.95 * 1.5 * 4 * strength)  # water and flying
    assert damage(bolt, pikachu, onix.opponent_active_pokemon) == 0  # ground
    assert damage(slam, pikachu, other) == pytest.approx(
        0.8 * 0.75 * pikachu.base_stats["atk"] / other.base_stats["def"]
    )
    assert damage(wave, pikachu, other) == 0


def test_worth_is_health_and_who_has_won():
    battle = battle_of(team=(PIKACHU, SNORLAX))
    assert worth(battle) == pytest.approx((2 - 6) / 6)  # four of the team are not there
    battle.parse_message(["", "-damage", "p2a: Gyarados", "25/100"])
    assert worth(battle) == pytest.approx((2 - 6 + 0.75) / 6)
    battle.won_by("me")
    assert worth(battle) == pytest.approx((2 - 6 + 0.75) / 6 + 1)


def test_opponents_choose_what_they_are_called():
    battle = battle_of()
    assert max_damage(battle) == "move 1"
    assert max_damage(battle_of(opponent="Onix, L80")) == "move 4"  # surf
    opponent = at_random(random.Random(1))
    assert {opponent(battle) for _ in range(200)} == {"move 1", "move 2", "move 3", "move 4", "switch 2"}


# ---- the networks and what is learned ----


SMALL = BattleSettings(hidden=16, heads=2, memory=4, envs=3)


def networks():
    torch.manual_seed(1)
    return Networks(SMALL)


def played(length, seed=0):
    chance = np.random.default_rng(seed)
    return Played(
        [chance.normal(size=OBSERVATION).astype(np.float32) for _ in range(length)],
        [np.ones(ACTIONS, dtype=bool)] * length,
        [Choice(int(chance.integers(ACTIONS)), -2.0, 0.5)] * length,
        [0.0] * (length - 1) + [1.0],
    )


def test_a_battle_played_step_by_step_is_the_battle_learned_at_once():
    network = networks().policy
    battle = torch.randn(9, 2, OBSERVATION)
    at_once, _ = network(battle, network.empty(2))
    memory, steps = network.empty(2), []
    for observation in battle:
        logits, memory = network(observation[None], memory)
        steps.append(logits[0])
    assert torch.allclose(at_once, torch.stack(steps), atol=1e-6)


def test_a_longer_battle_beside_it_changes_nothing_for_a_battle():
    short, long = played(5), played(11, seed=1)
    batch = batch_of([short, long], SMALL)
    alone, beside = batch.pick(torch.tensor([0])), batch.pick(torch.tensor([0, 1]))
    cut = type(alone)(*(getattr(alone, name)[:5] for name in alone.__dataclass_fields__))
    only_first = beside.real.clone()
    only_first[:, 1] = False
    both = type(beside)(*(getattr(beside, name) for name in list(beside.__dataclass_fields__)[:-1]), only_first)
    agent = networks()
    assert torch.allclose(loss_of(agent, cut, SMALL), loss_of(agent, both, SMALL), atol=1e-6)


def test_advantages_look_ahead_by_gamma_and_lambda():
    battle = Played([], [], [Choice(0, 0.0, 1.0), Choice(0, 0.0, 2.0)], [0.0, 3.0])
    settings = BattleSettings(gamma=0.5, gae_lambda=0.5)
    assert advantages_of(battle, settings) == [0.5 * 2 - 1 + 0.25 * 1, 3 - 2]


def test_an_answer_does_not_depend_on_who_else_has_asked():
    everybody = dict(enumerate(played(3).observations))
    together = TogetherAgent(networks(), 3, 3).forward(everybody, set(everybody))
    for player, seen in everybody.items():
        logits, value = TogetherAgent(networks(), 3, 3).forward({player: seen}, {player})[player]
        assert torch.equal(logits, together[player][0])
        assert value == together[player][1]


def test_who_has_not_asked_keeps_its_memory():
    seen = played(6).observations
    busy, calm = TogetherAgent(networks(), 3, 3), TogetherAgent(networks(), 3, 3)
    for agent in (busy, calm):
        agent.forward({0: seen[0]}, {0})
    busy.forward({1: seen[1], 2: seen[2]}, {1, 2})
    logits = [agent.forward({0: seen[3]}, set())[0][0] for agent in (busy, calm)]
    assert torch.equal(*logits)


def test_together_and_alone_agree_but_for_rounding():
    seen, mask = played(2).observations, np.ones(ACTIONS, dtype=bool)
    alone, together = AloneAgent(networks(), 1), TogetherAgent(networks(), 1, 1)
    together.begin(0)
    for observation in seen:
        one, other = (agent.choose(0, observation, mask, random.Random(1)) for agent in (alone, together))
        assert one.action == other.action
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5)
        assert one.value == pytest.approx(other.value, abs=1e-5)


def test_actions_are_sampled_by_their_probabilities_and_only_allowed_ones():
    chance, mask = random.Random(1), np.zeros(ACTIONS, dtype=bool)
    mask[[2, 7]] = True
    logits = torch.zeros(ACTIONS)
    logits[7] = np.log(3)
    actions = [sample(logits, mask, chance)[0] for _ in range(2000)]
    assert set(actions) == {2, 7}
    assert actions.count(7) / 2000 == pytest.approx(0.75, abs=0.04)
    assert sample(logits, mask, chance)[1] in (pytest.approx(np.log(0.25)), pytest.approx(np.log(0.75)))


# ---- what is asked for wrongly ----


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--opponent", "nobody"], "'nobody' is not one of 'random', 'max_damage', 'self'"),
        (["--battle-format", "gen1ou"], "gen1ou"),
        (["--parallel", "0"], "envs: expected int >= 1"),
        (["hidden=100", "heads=8"], "hidden=100 is not a multiple of heads=8; choose one that is"),
        (["--server-dir", "nowhere"], "is not installed in"),
        (["--server-dir", "nowhere"], "run rlprof train battle --setup --server-dir"),
        (["--episode_s", "3"], "No such option"),
    ],
)
def test_what_is_asked_for_wrongly_is_said_before_anything_is_recorded(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["train", "battle", *words])
    assert done.exit_code != 0
    assert said in done.output + str(done.exception)
    assert not list(tmp_path.iterdir())


def test_an_address_is_short_or_whole():
    whole = "ws://127.0.0.1:8000/showdown/websocket"
    assert address_of("127.0.0.1:8000") == address_of(whole) == whole
    with pytest.raises(RlprofError, match="'8000' is no address of a server; write host:port or ws://"):
        address_of("8000")


@pytest.mark.parametrize("program", ["node", "npm"])
def test_without_node_or_npm_one_sentence_says_what_to_install(program, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None if name == program else f"/usr/bin/{name}")
    with pytest.raises(RlprofError, match=f"needs {program}, which is not on the PATH; install Node.js 20 or later"):
        install(tmp_path)


def test_a_failed_installation_says_why_in_one_sentence(tmp_path, monkeypatch):
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error network is unreachable' >&2\nexit 3\n")
    npm.chmod(0o755)
    monkeypatch.setattr(installing, "find", lambda _: str(npm))
    with pytest.raises(RlprofError, match=r"could not be installed into .*: npm error network is unreachable$"):
        install(tmp_path / "server")


def test_nobody_there_to_play_with_is_said_in_one_sentence():
    with pytest.raises(RlprofError, match=r"no player could enter the game server at ws://127\.0\.0\.1:9/showdown"):
        train(BattleSettings(server="127.0.0.1:9", **TINY), Progress("battle", "", show=False))


# ---- on the server ----


def test_a_second_installation_does_nothing_and_trains_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["train", "battle", "--setup", "--server-dir", str(folder)])
    assert done.exit_code == 0
    assert done.output.endswith("already\n")
    assert not list(tmp_path.iterdir())


def test_the_server_listens_on_this_machine_only(server):
    listening = [
        connection.laddr.ip
        for connection in psutil.Process(server.process.pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}


def test_the_server_asks_nobody_outside(folder):
    config = folder / "node_modules/pokemon-showdown/config/config.js"
    script = (
        f"require({json.dumps(str(config))}); require('dns').lookup('example.org', error => console.log(error.message))"
    )
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "this server asks nobody, not example.org\n"


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


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_the_server_ends_with_who_started_it(how, folder):
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_A_SERVER, str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as program:  # fmt: skip
        server = psutil.Process(int(program.stdout.readline()))
        family = [server, *server.children(recursive=True)]
        program.send_signal(how)
        program.wait(10)
        _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive


@pytest.mark.parametrize("opponent", ["random", "max_damage", "self"])
def test_the_same_seed_plays_the_same_battles_together(opponent, server):
    runs = [scores(server, opponent=opponent, batched_inference=True, envs=3) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0] != scores(server, opponent=opponent, batched_inference=True, envs=3, seed=2)


RECORDED = """
import json, sys
from rlprof.launch.start import drive
from rlprof.workloads.battle.settings import BattleSettings
from rlprof.workloads.battle.training import train
from rlprof.workloads.progress import Progress

progress = Progress("battle", "mean return", show=False)
with drive({"name": "battle", "quiet": True}) as recording:
    train(BattleSettings(**json.loads(sys.argv[1])), progress)
print(json.dumps([progress.scores, progress.steps, str(recording.folder)]))
"""


@pytest.fixture(scope="module")
def recorded(server, tmp_path_factory):
    """Scores, steps and the facts of a training with all probes."""
    settings = json.dumps(TINY | {"server": server.address})
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RECORDED, settings],
        cwd=tmp_path_factory.mktemp("recorded"), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    scores, steps, session = json.loads(done.stdout)
    return scores, steps, facts_of(Path(session))


def test_profiling_changes_no_score(recorded, server):
    assert recorded[0] == scores(server)


def test_steps_and_episodes_are_counted_once(recorded):
    _, steps, facts = recorded
    assert facts.progress.steps == steps
    assert facts.progress.episodes == TINY["envs"] * TINY["iterations"]
    assert facts.progress.iterations == TINY["iterations"]


def test_eight_threads_in_env_step_are_less_than_all_of_the_time(recorded):
    """The document's profiler said 1108 %."""
    breakdown = recorded[2].breakdown
    rows = [row for row in breakdown.rows if row.operation == "env_step"]
    collecting = sum(row.wall_ns for row in breakdown.rows if row.operation == "env_parallel_execution")
    assert sum(row.wall_ns for row in rows) > 2 * collecting
    assert 0 < sum(row.subtree_ledger_ns for row in rows) < collecting


def test_every_operation_of_the_document_has_its_time_and_little_has_none(recorded):
    breakdown = recorded[2].breakdown
    of = {}
    for row in breakdown.rows:
        of[row.operation] = of.get(row.operation, 0) + row.calls
    steps, updates = recorded[1], TINY["iterations"] * BattleSettings().epochs * 2
    assert of["env_reset"] == TINY["envs"] * TINY["iterations"]
    assert of["env_step"] == of["agent_action_selection"] == of["agent_value_calculation"] == steps
    assert of["env_parallel_execution"] == TINY["iterations"]
    assert of["gradient_calculation"] == of["optimizer_step"] == of["loss_calculation"] == updates
    (unattributed,) = (row for row in breakdown.rows if row.category == "unattributed")
    assert unattributed.ledger_ns < 0.05 * breakdown.wall_ns


def test_the_documents_command_leaves_its_files(server, tmp_path):
    (tmp_path / "train_config.yml").write_text("hidden: 16\nheads: 2\nmax_turns: 3\nopponent: max_damage\n")
    command = (
        f"rlprof train battle --device cpu --episodes 10 --profile --profile-name debug_test --flat logs/profiling"
        f" --config train_config.yml --parallel 2 --server {server.address} --breakdown"
    ).split()
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
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
        "rlprof", "train", "battle", "--episodes", "1000", "--parallel", "2", "--jsonl", "turns.jsonl",
        "hidden=16", "heads=2", "max_turns=5", f"server_dir={folder}",
    ]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    ) as program:  # fmt: skip
        while not (turns := tmp_path / "turns.jsonl").exists() or not turns.stat().st_size:
            assert program.poll() is None
            time.sleep(0.05)
        (server,) = psutil.Process(program.pid).children()
        server.kill()
        assert program.wait(15) == 2
        said = program.stderr.read()
    last = said.splitlines()[-1]
    assert last.startswith("rlprof: the game server at ws://127.0.0.1:")
    assert last.endswith("has closed the connection in mid-battle; see whether it still runs, and train again")
    (session,) = (tmp_path / "rlprof-runs").glob("battle_*")
    with Session(session) as opened:
        assert "RlprofError" in opened.end.how
    facts_of(session)


@pytest.mark.long
def test_it_learns(server):
    """To keep its health in the first 25 decisions, which is less a matter of luck than who wins."""
    more = {"hidden": 128, "learning_rate": 1e-3, "batch_size": 2, "gae_lambda": 0.8, "batched_inference": True}
    learned = scores(server, iterations=12, max_turns=25, **more)
    assert sum(learned[-3:]) / 3 > sum(learned[:3]) / 3 + 0.15
