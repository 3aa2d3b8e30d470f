"""Runs a program in a terminal of its own, whose output another program reads.

The program cannot see a difference to a real terminal: progress bars draw, colours are on, Ctrl-C interrupts.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress

from rlprof.errors import RlprofError
from rlprof.recording.environment import HELD

INTERRUPT = b"\x03"
"""Ctrl-C, which the terminal turns into SIGINT for the processes in its foreground."""


class PseudoTerminal:
    """A running program and the other end of its terminal."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], rows: int, columns: int, is_python: bool = False
    ) -> None:
        """With `is_python`, an interrupt waits until rlprof has started in the program: see `command.become`."""
        self.fd, slave = os.openpty()
        variables = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
        try:
            _pass_on_unchanged(slave)
            self.resize(rows, columns)
            holds = is_python and signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
            if holds:
                variables[HELD] = "1"

            def begin() -> None:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
                if holds:
                    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])

            self.process = subprocess.Popen(
                command, stdin=slave, stdout=slave, stderr=slave, env=variables, start_new_session=True,
                preexec_fn=begin,  # noqa: PLW1509 - there is one thread so far
            )  # fmt: skip
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            os.close(self.fd)
            raise RlprofError(f"{command[0]} cannot be run: {getattr(error, 'strerror', None) or error}") from error
        finally:
            os.close(slave)

    def resize(self, rows: int, columns: int) -> None:
        """The program gets SIGWINCH."""
        with suppress(OSError):
            fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", max(1, rows), max(1, columns), 0, 0))

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        with suppress(OSError):
            os.write(self.fd, INTERRUPT)

    def send_signal(self, number: int) -> None:
        with suppress(OSError):
            self.process.send_signal(number)

    def close(self) -> None:
        """A program that still runs gets SIGHUP from the kernel."""
        with suppress(OSError):
            os.close(self.fd)


def _pass_on_unchanged(terminal: int) -> None:
    """Output arrives as the program has written it, without a carriage return before each line feed."""
    with suppress(termios.error):
        settings = termios.tcgetattr(terminal)
        settings[1] &= ~termios.OPOST
        termios.tcsetattr(terminal, termios.TCSANOW, settings)
