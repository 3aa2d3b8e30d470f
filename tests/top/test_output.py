"""The output of a program in a pseudo-terminal: complete in the file, bounded in memory."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from rlprof.errors import RlprofError
from rlprof.run.output import KEPT, Output
from rlprof.run.pseudo_terminal import PseudoTerminal

SECONDS = 60


def run(program, folder, rows=8, columns=80):
    terminal = PseudoTerminal([sys.executable, "-c", program], dict(os.environ), rows, columns)
    codes = []
    output = Output(terminal, folder / "output", codes.append)
    output.start()
    return terminal, output, codes


def finish(terminal, output):
    output.join()
    output.close()
    terminal.close()
    return output.path.read_bytes()


def wait_for(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_file_has_every_byte_as_it_was_written(tmp_path):
    content = bytes(byte for byte in range(256)) * 1_000
    program = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000); sys.exit(3)"
    terminal, output, codes = run(program, tmp_path)
    assert finish(terminal, output) == content
    assert codes == [3]


def test_the_file_is_private_and_moves_to_the_session_without_a_gap(tmp_path):
    program = "import sys\nfor n in range(20000): print('line', n)\ninput()\nfor n in range(100): print('more', n)"
    terminal, output, _ = run(program, tmp_path)
    wait_for(lambda: output.total > 1_000)
    session = tmp_path / "session"
    session.mkdir()
    output.move(session)
    wait_for(lambda: b"line 19999\n" in output.path.read_bytes())
    os.write(terminal.fd, b"\n")  # the terminal echoes it
    text = finish(terminal, output).decode()
    assert output.path == session / "output.log"
    assert not (tmp_path / "output").exists()
    assert output.path.stat().st_mode & 0o777 == 0o600
    lines = [line for line in text.splitlines() if line]
    assert lines == [*(f"line {n}" for n in range(20_000)), *(f"more {n}" for n in range(100))]


def test_of_much_output_the_newest_lines_are_taken_and_memory_is_bounded(tmp_path):
    terminal, output, _ = run("for n in range(200_000): print('line', n)", tmp_path)
    finish(terminal, output)
    taken, skipped = output.take(1_000)
    assert skipped
    assert taken.startswith(b"line ")
    assert taken.endswith(b"line 199999\n")
    assert len(taken) <= 1_000
    assert output.take(1_000) == (b"", False)
    assert len(output._newest) <= 2 * KEPT


def test_the_program_has_a_terminal_of_the_given_size_and_learns_of_a_new_one(tmp_path):
    program = (
        "import os, signal, sys\n"
        "print(os.isatty(0), os.isatty(1), os.isatty(2), *os.get_terminal_size(), flush=True)\n"
        "signal.signal(signal.SIGWINCH, lambda *_: (print(*os.get_terminal_size()), sys.exit()))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()"
    )
    terminal, output, _ = run(program, tmp_path, rows=7, columns=93)
    wait_for(lambda: b"ready" in output.path.read_bytes())
    terminal.resize(9, 61)
    assert finish(terminal, output) == b"True True True 93 7\nready\n61 9\n"


def test_ctrl_c_interrupts_again_and_again(tmp_path):
    program = (
        "import os, signal, time\nseen = []\n"
        "def interrupted(*_):\n    os.write(1, b'interrupt %d\\n' % len(seen))\n    seen.append(True)\n"
        "signal.signal(signal.SIGINT, interrupted)\nprint('ready', flush=True)\n"
        "while len(seen) < 3: time.sleep(0.01)"
    )
    terminal, output, codes = run(program, tmp_path)
    wait_for(lambda: b"ready" in output.path.read_bytes())
    for number in range(3):
        terminal.interrupt()
        wait_for(lambda number=number: b"interrupt %d" % number in output.path.read_bytes())
    finish(terminal, output)
    assert codes == [0]


def test_the_signal_that_ends_a_program_is_its_exit_code(tmp_path):
    terminal, output, codes = run("import os; os.kill(os.getpid(), 9)", tmp_path)
    finish(terminal, output)
    assert codes == [-signal.SIGKILL]


def test_output_of_processes_that_the_program_leaves_behind_is_not_waited_for(tmp_path):
    program = "import subprocess, sys; subprocess.Popen(['sleep', '300']); print('done')"
    terminal, output, codes = run(program, tmp_path)
    assert finish(terminal, output) == b"done\n"
    assert codes == [0]


def test_a_full_disk_is_reported_and_the_program_goes_on(tmp_path):
    terminal = PseudoTerminal([sys.executable, "-c", "print('x' * 100_000)"], dict(os.environ), 8, 80)
    codes = []
    output = Output(terminal, tmp_path / "output", codes.append)
    output.close()
    with open("/dev/full", "ab", buffering=0) as full:
        output._file = full
        output.start()
        output.join()
    terminal.close()
    assert codes == [0]
    assert output.problem == "output is incomplete: No space left on device"
    assert output.take(100)[0].endswith(b"x\n")


def test_a_command_that_does_not_exist_is_one_sentence():
    with pytest.raises(RlprofError, match=r"^/no/such cannot be run: No such file or directory$"):
        PseudoTerminal(["/no/such"], {}, 5, 80)
