"""`rlprof whatif SESSION env_step=2x`: what would it bring?"""

from __future__ import annotations

import click

from rlprof.analysis.lane_work import work_of
from rlprof.analysis.prediction import what_if
from rlprof.cli import options
from rlprof.cli.help import command, group, option
from rlprof.cli.output import deliver, format_of
from rlprof.cli.progress import run_experiment
from rlprof.experiment.arm import words_of
from rlprof.experiment.slowdowns import SlowdownPlan, command_of
from rlprof.session.reader import Session
from rlprof.whatif.speedups import read_speedups
from rlprof.whatif.text import render, to_json, to_text
from rlprof.whatif.verification import fitted, verify

FORMATS = {"text": to_text, "json": to_json}


@command(
    examples=(
        "rlprof whatif",
        "rlprof whatif last env_step=2x",
        "rlprof whatif last env_step=1.5x update=0 --format json",
        "rlprof whatif last env_step=2x --verify --max-time 2m",
    )
)
@click.argument("words", nargs=-1, metavar="[SESSION] [OPERATION=2x]...")
@group(
    "Verification",
    option(
        "--verify", "verifies", is_flag=True,
        help="Run the training again, slow the operations down, and compare the effect with the prediction.",
    ),
    option(
        "--command", "again", metavar="COMMAND", default_text="the recorded command",
        help="Command line for --verify: 'run train.py ...' or 'train petri ...'.",
    ),
    option(
        "--precision", callback=options.precision, metavar="PERCENT", default="1%",
        help="Stop --verify once each cost is known to within this fraction of an iteration.",
    ),
    options.max_time,
    options.patience,
)  # fmt: skip
@group("Output", options.format_(*FORMATS), options.output)
def whatif(
    words: tuple[str, ...], verifies: bool, again: str | None, max_time: float, precision: float,
    patience: float | None, format_: str | None, output: str | None,
) -> None:  # fmt: skip
    """Predict what faster operations would bring.

    SESSION is the folder of a session, its session.db, or `last`, the newest session (the default).

    env_step=2x asks for env_step at twice its speed, and env_step=0 for no time at all; several are applied
    together. An operation includes everything that it calls. The answer also ranks all operations by what they would
    bring.
    """
    chosen = format_ or format_of(output, FORMATS)
    given, changes = (words[0], words[1:]) if words and "=" not in words[0] else ("last", words)
    with Session(given) as session:
        work, info = work_of(session), session.info
    saving = read_speedups(changes, work)
    found = what_if(work, saving)
    verified = None
    if verifies:
        if found.asked is None:
            raise click.UsageError("--verify needs an operation to slow down, such as env_step=2x.")
        line = again or command_of(info.command)
        words_of(line)
        plan = SlowdownPlan(
            line,
            tuple(saving),
            working_folder=None if again else info.folder or None,
            seconds=max_time,
            width=precision,
            patience=patience,
        )
        experiments = run_experiment(fitted(plan, found.topology), work.whole.wall_ns / found.iterations)
        verified = verify(work, found.topology, found.asked, experiments)
    deliver(FORMATS, render, chosen, output, found, verified)
