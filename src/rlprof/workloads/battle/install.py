"""Installs the game server, Pokemon Showdown from npm, in a folder of the user's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from rlprof.errors import RlprofError
from rlprof.workloads.battle.settings import BattleSettings

PACKAGE = "pokemon-showdown"
VERSION = "0.11.11"
INSTALL_SECONDS = 600

STARTED_BY = "RLPROF_STARTED"
"""Environment variable that makes the server end with the process that started it."""

CONFIG = """\
// Written by `rlprof train battle --setup`. What is not here is as in config-example.js.
'use strict';

exports.bindaddress = '127.0.0.1';
exports.subprocesses = 0;
exports.repl = false;
exports.watchconfig = false;
exports.reportjoins = false;
exports.reportbattles = false;
// Nobody is asked who a player is, nor told who has won, nor for lists of suspicious addresses.
const dns = require('dns');
const { isIP } = require('net');
const lookup = dns.lookup;
dns.lookup = (host, ...rest) => {
	if (isIP(host) || host === 'localhost') return lookup(host, ...rest);
	process.nextTick(rest[rest.length - 1], new Error(`this server asks nobody, not ${host}`));
};
exports.loginserver = 'http://127.0.0.1:9/';
exports.routes = {
	root: '127.0.0.1:9', client: '127.0.0.1:9', dex: '127.0.0.1:9', replays: '127.0.0.1:9',
};

exports.startuphook = () => {
	if (process.env.RLPROF_STARTED) {
		// The other end closes however its holder ends, even by kill -9.
		process.stdin.resume().on('end', () => process.exit(0));
	}

	// Players whom rlprof names have the seed of their battles in their names: b, 12 digits of it, 4 digits that make
	// the name unique, and their side. So neither the order in which battles begin matters nor what was played before.
	const { createHash } = require('crypto');
	const played = new Map();
	const createBattle = Rooms.createBattle;
	Rooms.createBattle = options => {
		const ids = options.players.map(player => player.user.id);
		if (ids.length === 2 && ids.every(id => /^b[0-9a-f]{16}[12]$/.test(id))) {
			const number = played.get(ids[0]) || 0;
			played.set(ids[0], number + 1);
			const seed = what => 'sodium,' +
				createHash('sha256').update(`${ids[0].slice(1, 13)} ${number} ${what}`).digest('hex').slice(0, 32);
			options.seed = seed('battle');
			for (const player of options.players) {
				const team = Teams.generate(options.format, { seed: seed(player.user.id.slice(-1)) });
				player.team = Teams.pack(team);
			}
		}
		return createBattle.call(Rooms, options);
	};
	console.log('rlprof: ready');
};
"""

READY = "rlprof: ready"
"""The server prints this when it is ready. It listens some seconds earlier."""


def prepare(settings: BattleSettings) -> bool:
    """Install the server if --setup was given, and check that everything needed is there. Runs before recording.
    Returns True if nothing is to be trained."""
    if settings.setup:
        folder = folder_of(settings)
        _say(f"{PACKAGE} {VERSION} is in {folder}" + ("" if install(folder) else " already"))
        return True
    if settings.hidden % settings.heads:
        raise RlprofError(f"hidden={settings.hidden} is not a multiple of heads={settings.heads}; use one that is")
    if not settings.server:
        check_installed(folder_of(settings))
    return False


def folder_of(settings: BattleSettings) -> Path:
    if settings.server_dir:
        return Path(settings.server_dir).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "rlprof" / PACKAGE


def package_of(folder: Path) -> Path:
    """Folder into which npm installs the package."""
    return folder / "node_modules" / PACKAGE


def is_installed(folder: Path) -> bool:
    """True if this version is installed and configured by this version of rlprof."""
    package = package_of(folder)
    try:
        version = json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]
        return bool(version == VERSION) and (package / "config" / "config.js").read_text(encoding="utf-8") == CONFIG
    except (OSError, ValueError, KeyError):
        return False


def check_installed(folder: Path) -> None:
    if not is_installed(folder):
        again = f" --server-dir {folder}" if folder != folder_of(BattleSettings()) else ""
        raise RlprofError(
            f"the game server {PACKAGE} {VERSION} is not installed in {folder}; run rlprof train battle --setup{again}"
        )
    find("node")


def install(folder: Path) -> bool:
    """Install the server. Returns False if it is installed already."""
    if is_installed(folder):
        return False
    find("node")
    npm = find("npm")
    _say(f"installing {PACKAGE} {VERSION} with npm into {folder}: about 150 MB, half a minute")
    command = [
        npm, "install", "--prefix", str(folder), "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund",
        "--loglevel=error", f"{PACKAGE}@{VERSION}",
    ]  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RlprofError(f"{PACKAGE} could not be installed into {folder}: {error}") from error
    if done.returncode:
        reason = next(iter(done.stderr.strip().splitlines()[:1]), f"npm ended with {done.returncode}")
        raise RlprofError(f"{PACKAGE} could not be installed into {folder}: {reason}")
    _configure(package_of(folder))
    return True


def find(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise RlprofError(
            f"rlprof train battle needs {program}, which is not on the PATH; install Node.js 20 or later, with npm"
        )
    return found


def _configure(package: Path) -> None:
    for name in ("logs", "config/chat-plugins"):  # npm writes into both folders, and creates neither
        (package / name).mkdir(parents=True, exist_ok=True)
    (package / "config" / "config.js").write_text(CONFIG, encoding="utf-8")


def _say(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"battle: {text}\n")
