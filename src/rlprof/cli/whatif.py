"""`rlprof whatif SESSION env_step=2x`: what would it bring?"""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

import click

from rlprof.analysis.lane_work import Work, work_of
from rlprof.analysis.topology import Topology
from rlprof.cli.compare import seconds, share
from rlprof.cli.output import show, write
from rlprof.cli.whatif_progress import run_experiment
from rlprof.errors import RlprofError
from rlprof.experiment.arm import words_of
from rlprof.experiment.slowdowns import SlowdownPlan, command_of
from rlprof.ledger.catalogue import WAITS
from rlprof.session.reader import Session
from rlprof.whatif.prediction import WhatIf, operations_of, what_if
from rlprof.whatif.text import render, to_json, to_text
from rlprof.whatif.verification import Verified
from rlprof.whatif.verification import verify as bear_out

_SPEED = re.compile(r"(?P<times>\d+\.?\d*|\.\d+)x|(?P<free>0|free)", re.IGNORECASE)


@click.command()
@click.argument("words", nargs=-1, metavar="[SESSION] [OPERATION=2x ...]")
@click.option("--verify", is_flag=True, help="Slow the operations down in the real training, and see what that does.")
@click.option("--command", help="For --verify, if not as it was recorded: 'run train.py ...' or 'train petri ...'.")
@click.option("--max-time", callback=seconds, default="5m", show_default=True, help="Of --verify.")
@click.option("--precision", callback=share, default="1%", show_default=True, help="Of --verify: enough.")
@click.option(
    "--patience", callback=seconds, help="Of --verify: who takes longer for an iteration, or to start, hangs."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--output", "-o", metavar="FILE", help="Write here instead of the terminal.")
def whatif(
    words: tuple[str, ...], verify: bool, command: str | None, max_time: float, precision: float,
    patience: float | None, as_json: bool, output: str | None,
) -> None:  # fmt: skip
    """What would it bring if operations were faster?

    SESSION is a session's folder, its session.db, or `last`, the newest one. env_step=2x is twice as fast, env_step=0
    free; several are meant together. An operation is meant with all that it calls. All are ranked by what they would
    bring, whether one is asked for or not.
    """
    given, changes = _split(words)
    with Session(given) as session:
        work, info = work_of(session), session.info
    saving = dict(_change(change) for change in changes)
    _check(saving, work)
    found = what_if(work, saving)
    verified = None
    if verify:
        if not saving:
            raise click.UsageError("--verify needs something to try: env_step=2x")
        again = command or command_of(info.command)
        words_of(again)
        plan = SlowdownPlan(
            again,
            tuple(saving),
            working_folder=None if command else info.folder or None,
            seconds=max_time,
            width=precision,
            patience=patience,
        )
        verified = _verify(work, found, plan)
    if as_json:
        write(to_json(found, verified), output)
    elif output is not None:
        write(to_text(found, verified), output)
    else:
        show(partial(render, found, verified))


def _split(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The session, `last` unless told, and the changes."""
    if words and "=" not in words[0]:
        return words[0], words[1:]
    return "last", words


def _change(text: str) -> tuple[str, float]:
    """`env_step=2x` is ("env_step", 0.5): the part of its time that is left."""
    name, _, speed = text.rpartition("=")
    found = _SPEED.fullmatch(speed)
    if not name or found is None or (found["times"] and not float(found["times"])):
        raise RlprofError(f"{text} is no change: write env_step=2x for twice as fast, env_step=0 for free")
    return name, 0.0 if found["free"] else 1 / float(found["times"])


def _check(saving: dict[str, float], work: Work) -> None:
    known = operations_of(work)
    for name in saving:
        if name in WAITS:
            raise RlprofError(f"{name} is a wait for others, and cannot be faster itself; name what it waits for")
        if name not in known:
            near = get_close_matches(name, known, n=3, cutoff=0.5) or known[:8]
            raise RlprofError(f"the session has no operation {name} in its iterations; it has {', '.join(near)}")


def _verify(work: Work, found: WhatIf, plan: SlowdownPlan) -> Verified:
    assert found.asked is not None
    beside = found.topology.model == "async"
    plan = replace(plan, shares_gil=_shares_gil(found.topology), settle=2 if beside else 0, counted=4 if beside else 1)
    iteration_ns = work.whole.wall_ns / found.iterations
    return bear_out(work, found.topology, found.asked, run_experiment(plan, iteration_ns))


def _shares_gil(how: Topology) -> bool:
    return any(group.kind != "process" for group in how.groups)
