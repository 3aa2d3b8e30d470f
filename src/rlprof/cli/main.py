"""`rlprof`: finds the command, and turns an error of the library into one sentence and an exit code.

The exit codes are 0 for success, 1 if the answer is no (a check failed), and 2 for wrong use or unreadable input.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module, metadata

import click

from rlprof.cli.help import LazyGroup
from rlprof.errors import RlprofError
from rlprof.interrupts import raise_again

COMMANDS = {
    "run": "Run a training script unchanged and record it.",
    "list": "List the recorded sessions, newest first.",
    "top": "Watch a running training in the terminal.",
    "serve": "Watch and compare sessions in the browser.",
    "stacks": "Show which line of Python a running training is at.",
    "report": "Report where the time of a recorded session went.",
    "analyze": "Score the bottlenecks of a session and recommend changes.",
    "capture": "Capture a torch trace of a training that is already running.",
    "trace": "Read torch traces: summarize, diff, cut, or open in Perfetto.",
    "compare": "Compare two trainings: is one really faster, and which part?",
    "whatif": "Predict what a faster operation would bring, and verify it.",
    "export": "Export a session to Perfetto, speedscope, TensorBoard or others.",
    "doctor": "Check this machine for settings that slow trainings down.",
    "selftest": "Check that rlprof itself works and measures correctly here.",
    "train": "Train one of the reference workloads and record it.",
}


def _load(name: str) -> click.Command:
    command: click.Command = getattr(import_module(f"rlprof.cli.{name}"), name)
    return command


@click.group(
    cls=LazyGroup, lines=COMMANDS, load=_load, title="Commands",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
@click.version_option(metadata.version("rlprof"), "-V", "--version", prog_name="rlprof")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Find out where every second of reinforcement-learning training goes.

    Record a training, then read its session:

    \b
      rlprof run train.py
      rlprof report last
    """
    del debug  # main() reads it, because errors can come before this function is called
    if context.invoked_subcommand != "run":  # `run` becomes the program, which has its own handling of Ctrl-C
        raise_again()


def main(args: list[str] | None = None) -> None:
    args = sys.argv[1:] if args is None else args
    try:
        code = cli.main(args, prog_name="rlprof", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.exceptions.Abort:
        print("rlprof: interrupted", file=sys.stderr)  # noqa: T201
        code = 130
    except BrokenPipeError:  # `rlprof report last | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except (RlprofError, MemoryError, OSError) as error:
        if "--debug" in args:
            raise
        _complain(error)
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


def _complain(error: RlprofError | MemoryError | OSError) -> None:
    """Print one sentence to stderr. Names of files and operations in it may hold control characters."""
    from rlprof.cli.output import harmless  # noqa: PLC0415 - only where something went wrong

    if isinstance(error, MemoryError):
        text = "there is not enough memory. Use a machine with more, or a smaller file."
    elif isinstance(error, OSError):  # a full disk, a folder without access
        text = f"{error.filename or 'the output'}: {error.strerror or error}"
    else:
        text = str(error)
    print(harmless(f"rlprof: {text}"), file=sys.stderr)  # noqa: T201 - the only place that prints errors
