"""`rlprof selftest`: records and reports a training whose times are known."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from rlprof.cli import options
from rlprof.cli.help import command, option
from rlprof.doctor.selftest.checks import run_checks
from rlprof.doctor.selftest.simulation import simulate
from rlprof.session.folder import sessions_folder

_WORDS = {True: "ok", False: "FAILED", None: "skipped"}


@command()
@option("--cleanup", is_flag=True, help="Remove the session afterwards.")
@options.dir_
@click.pass_context
def selftest(context: click.Context, cleanup: bool, dir: str | None) -> None:
    """Check that rlprof itself works and measures correctly here.

    Records a simulated training whose times and counts are known, and compares them with the report. Exits with 0
    if all checks pass, else with 1.
    """
    folder, truth = simulate(Path(dir) if dir else sessions_folder())
    failed = 0
    for check in run_checks(folder, truth):
        failed += check.passed is False
        click.echo(f"{_WORDS[check.passed]:<8} {check.name}: {check.detail}")
    if folder is not None and cleanup:
        shutil.rmtree(folder)
    elif folder is not None:
        click.echo(f"The session is in {folder}.")
    click.echo(f"{failed} of the checks failed." if failed else "rlprof works here.")
    context.exit(1 if failed else 0)
