"""Checks both command lines of a comparison before either is started, so that a typo is reported at once."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec

import click

from rlprof.cli.run import run
from rlprof.cli.train import train
from rlprof.errors import RlprofError
from rlprof.experiment.arm import words_of
from rlprof.run.command import any_command, script_command


def check_arms(commands: dict[str, str]) -> None:
    """Raise an error that names the command line whose script, module, command, workload or option does not exist."""
    for name, command in commands.items():
        kind, *words = words_of(command)
        try:
            _check_run(words) if kind == "run" else _check_train(words)
        except (click.ClickException, RlprofError) as error:
            problem = error.format_message() if isinstance(error, click.ClickException) else error
            raise RlprofError(f"{name} ({command}): {problem}") from error
        except click.exceptions.Exit as error:  # --help
            raise RlprofError(f"{name} ({command}) trains nothing.") from error


def _check_run(words: list[str]) -> None:
    given = run.make_context("run", words).params
    if given["module"]:
        _check_module(given["program"][0])
    else:
        (any_command if given["command"] else script_command)(given["program"])


def _check_module(name: str) -> None:
    """Look for the outermost package only. Looking inside would import it."""
    package = name.partition(".")[0]
    here = PathFinder.find_spec(package, [os.getcwd(), *sys.path])  # where `python -m` looks first
    if here is None and find_spec(package) is None:
        raise RlprofError(f"There is no module {name}.")


def _check_train(words: list[str]) -> None:
    if not words:
        raise RlprofError("No workload is named. Write train WORKLOAD.")
    with click.Context(train, info_name="train") as context:
        name, command, rest = train.resolve_command(context, words)
        assert command is not None  # an unknown name has raised an error
        command.make_context(name, rest)
