"""`rlprof`: finds the command, and turns what the library raises into one sentence and an exit code.

0: done. 1: the answer is no. 2: wrong use or unreadable input.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module, metadata

import click

from rlprof.errors import RlprofError

COMMANDS = {
    "run": "Run a training that was not edited, and record it.",
    "train": "Run a reference training, recorded: petri, ricochet, distill, morph, battle.",
    "report": "Show where the time of a recorded session went.",
    "analyze": "Score the bottlenecks of a session or JSON report and recommend what to do.",
    "compare": "Say whether one training is really faster than another, with a known error rate.",
    "whatif": "Say what it would bring if an operation were faster, and try it.",
    "capture": "Capture a torch trace of a training that runs already.",
    "trace": "Read torch traces: what took the time, how two differ, a look at one, a piece of one.",
    "export": "Give a session to another tool: Perfetto, speedscope, TensorBoard, OpenTelemetry, a spreadsheet.",
    "doctor": "Measure this machine and say what is set up badly.",
    "selftest": "Check this installation: record a planted training and compare what comes out.",
}


class _Commands(click.Group):
    """Imports a command only when it is called, so that `rlprof --help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"rlprof.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(metadata.version("rlprof"), prog_name="rlprof")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Where every second of reinforcement-learning training goes.

    Record a training with rlprof.record(), then read the session it leaves: rlprof report last
    """
    del debug  # read by main(), which sees errors from before this runs too


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit."""
    args = sys.argv[1:] if args is None else args
    try:
        code = cli.main(args, prog_name="rlprof", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.exceptions.Abort:
        print("rlprof: interrupted", file=sys.stderr)  # noqa: T201
        code = 130
    except RlprofError as error:
        if "--debug" in args:
            raise
        _say(f"rlprof: {error}")
        code = 2
    except MemoryError:
        if "--debug" in args:
            raise
        _say("rlprof: there is not enough memory for this; try a machine with more, or a smaller file")
        code = 2
    except BrokenPipeError:  # `rlprof report last | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:  # a full disk behind the standard output, a folder that may not be read
        if "--debug" in args:
            raise
        _say(f"rlprof: {error.filename or 'the output'}: {error.strerror or error}")
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


def _say(text: str) -> None:
    """On the standard error. The names of files and operations in it may hold what a terminal would obey."""
    from rlprof.cli.output import harmless  # noqa: PLC0415 - only where something went wrong

    print(harmless(text), file=sys.stderr)  # noqa: T201 - this is where it is said
