"""`rlprof selftest`: the whole way on a training whose truth is known."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from rlprof.doctor.selftest.checks import run_checks
from rlprof.doctor.selftest.simulation import simulate
from rlprof.session.folder import sessions_folder

_WORDS = {True: "ok", False: "FAILED", None: "skipped"}


@click.command()
@click.option("--cleanup", is_flag=True, help="Remove the session afterwards.")
@click.option("--dir", "dir_", metavar="FOLDER", help="Where the session goes: RLPROF_DIR or rlprof-runs unless told.")
@click.pass_context
def selftest(context: click.Context, cleanup: bool, dir_: str | None) -> None:
    """Check this installation: record a planted training and compare what comes out with what went in.

    Exit code 0 when all is well, 1 when something is wrong.
    """
    folder, truth = simulate(Path(dir_) if dir_ else sessions_folder())
    failed = 0
    for check in run_checks(folder, truth):
        failed += check.passed is False
        click.echo(f"{_WORDS[check.passed]:<8} {check.name}: {check.detail}")
    if folder is not None and cleanup:
        shutil.rmtree(folder)
    elif folder is not None:
        click.echo(f"the session is in {folder}")
    click.echo(f"{failed} of the checks failed" if failed else "rlprof works here")
    context.exit(1 if failed else 0)
