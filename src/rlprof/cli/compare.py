"""`rlprof compare 'run train.py --envs 4' 'run train.py --envs 8'`: is B really faster than A?"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from rlprof import compare as compare_package
from rlprof.analysis.comparison import Comparison
from rlprof.analysis.components import component_of
from rlprof.analysis.differences import changes
from rlprof.analysis.load import load_facts
from rlprof.cli.command_lines import check_arms
from rlprof.cli.compare_progress import run_against_itself, run_comparison
from rlprof.cli.output import show, write
from rlprof.compare import noise_text as self_test_report
from rlprof.compare.html import to_html
from rlprof.compare.noise import self_test
from rlprof.compare.paired import ALPHA, MOST_PAIRS, Plan
from rlprof.compare.separate_sessions import compare_apart, measure_session
from rlprof.compare.text import render, to_json, to_text
from rlprof.errors import RlprofError
from rlprof.session.folder import DATABASE, find_database
from rlprof.session.secrets import mask_line

SMALL_PPO = f"run {shlex.quote(str(Path(compare_package.__file__).with_name('small_ppo.py')))}"
SELF_TEST_PAIRS = 20
INTERRUPTED = 130
"""As a shell has it for Ctrl-C."""
_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


def seconds(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """`90`, `90s`, `10m`, `1h`."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+\.?\d*)\s*(\w*)", text)
    if found is None or found[2] not in _UNITS:
        raise click.BadParameter(f"{text} is no time: write 90s, 10m or 1h")
    return float(found[1]) * _UNITS[found[2]]


def share(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """`5%` or `5`."""
    if text is None:
        return None
    try:
        return float(text.removesuffix("%")) / 100
    except ValueError as error:
        raise click.BadParameter(f"{text} is no share: write 5%") from error


@click.command()
@click.argument("arms", nargs=-1, metavar="A B")
@click.option(
    "--self-test", "against_itself", is_flag=True,
    help="Compare A with A, or a small PPO with itself: error rate and smallest effect on this machine.",
)  # fmt: skip
@click.option(
    "--pairs", type=click.IntRange(2),
    help=f"Of processes, at most: {MOST_PAIRS} unless told, {SELF_TEST_PAIRS} of a self-test.",
)  # fmt: skip
@click.option(
    "--iterations", type=click.IntRange(1), default=20, show_default=True, help="Of each arm in a pair, at least."
)
@click.option(
    "--max-time", callback=seconds, default="10m", show_default=True, help="Begin no pair that would go over."
)
@click.option("--patience", callback=seconds, help="An arm that takes longer for an iteration or its start hangs.")
@click.option("--precision", callback=share, default="2%", show_default=True, help="Stop at an interval of ± this.")
@click.option(
    "--fail-if-slower", callback=share, metavar="PERCENT",
    help="Exit 1 if B is slower than A by more than PERCENT and the whole confidence interval agrees; 2 if A and B do "
    "different work; 130 after Ctrl-C.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--html", metavar="FILE", help="Also as a page with a forest plot.")
@click.option("--output", "-o", metavar="FILE", help="Write here instead of the terminal.")
def compare(
    arms: tuple[str, ...], against_itself: bool, pairs: int | None, iterations: int, max_time: float,
    patience: float | None, precision: float, fail_if_slower: float | None,
    as_json: bool, html: str | None, output: str | None,
) -> None:  # fmt: skip
    """Is B really faster than A?

    A and B are command lines of rlprof: 'run train.py --envs 4' 'run train.py --envs 8'. Both are started and take
    turns, iteration by iteration; pairs of processes are started anew until the answer is narrow enough.

    Or both are sessions that were recorded apart, which is weaker: a folder, a session.db, `last`, a JSON report,
    several of them with commas between, or a folder that holds several.
    """
    if len(arms) > 1 if against_itself else len(arms) != 2:
        raise click.UsageError(
            "give two arms, or one with --self-test: 'run train.py --envs 4' 'run train.py --envs 8'"
        )
    if against_itself:
        if html is not None or fail_if_slower is not None:
            raise click.UsageError("--html and --fail-if-slower are for two arms; --self-test has --json and --output")
        a = arms[0] if arms else SMALL_PPO
        _test_itself(Plan(a, a, pairs or SELF_TEST_PAIRS, iterations, max_time, 0.0, patience), as_json, output)
        return
    a, b = arms
    sides = [[] if _is_command(arm) else _sessions(arm) for arm in arms]
    if all(sides):
        found = _compare_sessions(a, b, *sides)
    elif any(sides):
        raise RlprofError("a session and a command line cannot be compared; give two of a kind")
    else:
        check_arms({"A": a, "B": b})
        plan = Plan(a, b, pairs or MOST_PAIRS, iterations, max_time, precision, patience)
        found = run_comparison(plan, component_of({}))
    _show(found, as_json, html, output)
    if fail_if_slower is not None:
        _gate(found, fail_if_slower)


def _gate(found: Comparison, limit: float) -> None:
    """Exit 1 where the whole interval is beyond it; a comparison that cannot tell passes no gate, either."""
    if found.interrupted:
        click.echo("rlprof: interrupted, so --fail-if-slower has no answer", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
    if found.work is not None:
        raise RlprofError(f"A and B do different work, so --fail-if-slower has no answer: {found.work}")
    if found.speedup.high is None:
        said, remedy = (
            ("one session a side", "Give several sessions") if found.sessions else ("one pair", "Raise --max-time")
        )
        click.echo(f"rlprof: with {said} no error rate can be computed, so the gate cannot fail. {remedy}.", err=True)
    elif is_slower(found, limit):
        click.echo(f"rlprof: B is slower by more than {100 * limit:g} %", err=True)
        raise click.exceptions.Exit(1)


def _test_itself(plan: Plan, as_json: bool, output: str | None) -> None:
    check_arms({"A": plan.a})
    logs = run_against_itself(plan)
    if len(logs) < 2:
        raise RlprofError("one pair says nothing of the noise here; give it more --max-time")
    found = self_test(mask_line(plan.a), logs, ALPHA)
    if as_json:
        write(self_test_report.to_json(found), output)
    elif output is not None:
        write(self_test_report.to_text(found), output)
    else:
        show(partial(self_test_report.render, found))


def is_slower(found: Comparison, limit: float) -> bool:
    """Whether the whole interval says so."""
    return found.speedup.high is not None and found.speedup.high < -limit


def _show(found: Comparison, as_json: bool, html: str | None, output: str | None) -> None:
    if html is not None:
        write(to_html(found), html)
        click.echo(f"wrote {html}", err=True)
    if as_json:
        write(to_json(found), output)
    elif output is not None:
        write(to_text(found), output)
    else:
        show(partial(render, found))


def _is_command(given: str) -> bool:
    """Whatever is there by that name is a session."""
    return given.split()[:1] in (["run"], ["train"], ["rlprof"]) and not Path(given).exists()


def _sessions(given: str) -> list[Path]:
    """Those that are named."""
    found: list[Path] = []
    for part in given.split(","):
        path = Path(part)
        if part == "last":
            found.append(find_database(part))
        elif not part.strip():
            raise RlprofError(f"{given!r} names no session, and is no command line; an arm begins with run or train")
        elif path.is_dir() and not (path / DATABASE).exists():
            inside = sorted(folder for folder in path.iterdir() if (folder / DATABASE).exists())
            if not inside:
                raise RlprofError(f"{part} holds no sessions")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise RlprofError(f"there is no session {part}, and it is no command line that begins with run or train")
    return found


def _compare_sessions(a: str, b: str, of_a: list[Path], of_b: list[Path]) -> Comparison:
    facts = [[(str(path), load_facts(path)) for path in side] for side in (of_a, of_b)]
    measured = [[measure_session(one, name) for name, one in side] for side in facts]
    found = compare_apart(a, b, measured[0], measured[1], ALPHA)
    return replace(found, changes=changes(facts[0][0][1].session, facts[1][0][1].session))
