"""`rlprof run --top`: runs a training in a terminal of its own, below the dashboard."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from rlprof.recording.environment import STARTED_FILE, add_folders_file
from rlprof.run.output import Output
from rlprof.run.pseudo_terminal import PseudoTerminal
from rlprof.run.supervise import end_like, reason_for_nothing
from rlprof.session.folder import DATABASE
from rlprof.top.start import missing

MOST_SHOWN = 1 << 20
"""Bytes of the output of a program that was not recorded."""
TAIL = 1 << 15
MOST_LINES = 40
"""Last lines of the output that stay on the terminal."""


def run_with_dashboard(
    program: str, command: Sequence[str], environment: Mapping[str, str], is_script: bool = False, is_any: bool = False
) -> NoReturn:
    """Never returns: this process ends as the command did.

    program: name to show. is_script: rlprof starts in it before its first line. is_any: it may never start rlprof.
    """
    try:
        from rlprof.top.training_app import TrainingApp, pane_height  # noqa: PLC0415 - not part of every installation
    except ModuleNotFoundError as error:
        raise missing(error) from error
    columns, rows = shutil.get_terminal_size((100, 30))
    aside = Path(tempfile.mkdtemp(prefix="rlprof-"))
    folders = aside / "folders"
    variables = dict(environment)
    add_folders_file(variables, str(folders))
    if is_any:
        (aside / "started").touch()
        variables[STARTED_FILE] = str(aside / "started")
    try:
        terminal = PseudoTerminal(command, variables, pane_height(rows) - 1, columns, is_script)
        app = TrainingApp(program, terminal, lambda at_end: Output(terminal, aside / "output", at_end), folders)
        try:
            app.run(mouse=False)
        finally:
            app.finish()
            code = _wait(terminal, app.output)
        _leave(app.output, None if app.feed is None else app.feed.folder)
        if is_any and (aside / "started").exists():
            reason = reason_for_nothing(command)
            print(f"rlprof: nothing was recorded, because {reason}", file=sys.stderr)  # noqa: T201
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    end_like(code)


def _wait(terminal: PseudoTerminal, output: Output) -> int:
    """The exit code. A training that still runs, because the dashboard failed or lost its terminal, is ended."""
    if terminal.process.poll() is None:
        terminal.send_signal(signal.SIGHUP)
    output.start()  # the dashboard may have failed before it could
    output.join()
    output.close()
    terminal.close()
    return int(terminal.process.wait())


def _leave(output: Output, folder: Path | None) -> None:
    """What stays on the terminal: the end of the output, with the end-of-run summary. All of it if there is no
    session."""
    if folder is None or not (folder / DATABASE).exists():
        _print_all(output.path)
        return
    if output.path.parent != folder:
        output.move(folder)
    _print_tail(output.path)
    where = output.path
    with suppress(OSError, ValueError):  # it is elsewhere, or the working directory is gone
        where = where.resolve().relative_to(Path.cwd().resolve())
    print(f"rlprof: Output: {where}", file=sys.stderr)  # noqa: T201


def _print_all(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size > MOST_SHOWN:
            file.seek(-MOST_SHOWN, os.SEEK_END)
            file.readline()
            left_out = file.tell()
            print(f"rlprof: the first {left_out:,} bytes of the output are left out", file=sys.stderr)  # noqa: T201
        sys.stdout.flush()
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()


def _print_tail(path: Path) -> None:
    """As a terminal shows it, so that progress bars take one line each."""
    from rlprof.top.emulator import Emulator  # noqa: PLC0415 - not part of every installation

    columns, rows = shutil.get_terminal_size((100, 30))
    emulator = Emulator(max(5, min(MOST_LINES, rows - 2)), columns)
    with path.open("rb") as file:
        if path.stat().st_size > TAIL:
            file.seek(-TAIL, os.SEEK_END)
            file.readline()
        emulator.feed(file.read())
    console = Console(file=sys.stdout, highlight=False, width=columns)
    for line in emulator.written():
        console.print(line, soft_wrap=True, end="\n")
