"""Installs the game server, Pokemon Showdown from npm, in a folder of the user's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import click

from rlprof.errors import RlprofError
from rlprof.workloads.battle.settings import BattleSettings

PACKAGE = "pokemon-showdown"
VERSION = "0.11.11"
INSTALL_SECONDS = 600

STARTED_BY = "RLPROF_STARTED"
"""Environment variable that makes the server end with the process that started it."""

CONFIG = """\
// Written by `rlprof train battle --setup`. All other settings have the defaults of config-example.js.
'use strict';

exports.bindaddress = '127.0.0.1';
exports.subprocesses = 0;
exports.repl = false;
exports.watchconfig = false;
exports.reportjoins = false;
exports.reportbattles = false;

// The server contacts no other host: no login server, no ladder server, no lists of suspicious addresses.
const dns = require('dns');
const { isIP } = require('net');
const lookup = dns.lookup;
dns.lookup = (host, ...rest) => {
	if (isIP(host) || host === 'localhost') return lookup(host, ...rest);
	process.nextTick(rest[rest.length - 1], new Error(`this server contacts no other host, so not ${host}`));
};
exports.loginserver = 'http://127.0.0.1:9/';
exports.routes = {
	root: '127.0.0.1:9', client: '127.0.0.1:9', dex: '127.0.0.1:9', replays: '127.0.0.1:9',
};

exports.startuphook = () => {
	if (process.env.RLPROF_STARTED) {
		// The pipe closes when the training ends, however it ends, even by kill -9.
		process.stdin.resume().on('end', () => process.exit(0));
	}

	// rlprof puts the seed into the names of its players: b, 12 digits of the seed, 4 digits that make the name unique,
	// and 1 or 2 for the side. So a battle depends neither on other battles nor on the order in which they begin.
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
    """Install the server and return True with --setup. Otherwise check that everything needed is installed."""
    if settings.setup:
        folder = folder_of(settings)
        already = "" if install(folder) else " already"
        click.echo(f"battle: {PACKAGE} {VERSION} is{already} installed in {folder}", err=True)
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


def config_of(folder: Path) -> str | None:
    """The configuration of the installed server. None if this version is not installed."""
    package = package_of(folder)
    try:
        if json.loads((package / "package.json").read_text(encoding="utf-8"))["version"] != VERSION:
            return None
        return (package / "config" / "config.js").read_text(encoding="utf-8")
    except (OSError, ValueError, KeyError):
        return None


def check_installed(folder: Path) -> None:
    if config_of(folder) != CONFIG:
        again = f" --server-dir {folder}" if folder != folder_of(BattleSettings()) else ""
        raise RlprofError(
            f"the game server {PACKAGE} {VERSION} is not installed in {folder}; run rlprof train battle --setup{again}"
        )
    find("node")


def install(folder: Path) -> bool:
    """Install and configure the server. Returns False if nothing is left to do."""
    config = config_of(folder)
    if config == CONFIG:
        return False
    find("node")
    if config is None:
        _install_package(folder)
    package = package_of(folder)
    for name in ("logs", "config/chat-plugins"):  # the server writes into both folders, and creates neither
        (package / name).mkdir(parents=True, exist_ok=True)
    (package / "config" / "config.js").write_text(CONFIG, encoding="utf-8")
    return True


def _install_package(folder: Path) -> None:
    npm = find("npm")
    click.echo(f"battle: installing {PACKAGE} {VERSION} with npm into {folder} (about 150 MB)", err=True)
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


def find(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise RlprofError(
            f"rlprof train battle needs {program}, which is not on the PATH; install Node.js 20 or later, with npm"
        )
    return found
