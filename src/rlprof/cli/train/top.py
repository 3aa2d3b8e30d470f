"""`rlprof train WORKLOAD --top`: the same command without --top, below the dashboard."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from rlprof.cli.top import dashboard_flags
from rlprof.recording.environment import CONTROLLER, leave_session


def show_training(workload: str, words: Sequence[str]) -> None:
    """Never returns, except without a terminal: then the training runs in this process."""
    from rlprof.top.start import NO_TERMINAL, on_terminal  # noqa: PLC0415 - slow to import, and rarely needed

    if CONTROLLER in os.environ:
        return  # an experiment controls the training, and reads its output
    if not on_terminal():
        click.echo(NO_TERMINAL, err=True)
        return
    from rlprof.top.training import run_with_dashboard  # noqa: PLC0415

    left = [word for word in words if word not in dashboard_flags]
    command = [sys.executable, "-m", "rlprof", "train", workload, *left]
    environment = dict(os.environ)
    leave_session(environment)
    run_with_dashboard(f"train {workload}", command, environment)
