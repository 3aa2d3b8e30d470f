"""The command lines with --top where there is no terminal, or where it makes no sense."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from sessions import rlprof

from rlprof.cli.main import cli
from rlprof.top.start import NO_TERMINAL

PROGRAM = "import sys; print('ran', *sys.argv[1:]); sys.exit(5)"


def test_without_a_terminal_the_script_runs_and_one_line_says_so(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = rlprof("run", "--top", "train.py", "a", "--top", code=5, cwd=tmp_path)
    assert done.stdout == "ran a --top\n"
    assert done.stderr.splitlines()[0] == NO_TERMINAL


@pytest.mark.parametrize("words", [["-m", "train"], ["--", sys.executable, "train.py"]])
def test_a_module_and_a_command_run_without_a_terminal_too(words, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = rlprof("run", "--top", *words, code=5, cwd=tmp_path, env=environment)
    assert "ran" in done.stdout
    assert NO_TERMINAL in done.stderr


def test_an_option_that_cannot_be_combined_is_refused():
    for other in ("--compare", "--no-profile"):
        done = CliRunner().invoke(cli, ["train", "petri", "--top", other])
        assert done.exit_code == 2
        assert f"Leave out {other}." in done.output


def test_sanctum_is_another_name():
    done = CliRunner().invoke(cli, ["train", "petri", "--sanctum", "--compare"])
    assert "--top shows a recorded training" in done.output


def test_the_commands_do_not_import_what_only_the_dashboard_needs():
    program = (
        "import sys; import rlprof.cli.main, rlprof.cli.top, rlprof.cli.run, rlprof.top.once, rlprof.top.screen;"
        "print(sorted({'textual', 'pyte', 'torch', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_textual_one_sentence_says_what_to_install(tmp_path):
    (tmp_path / "textual.py").write_text("raise ModuleNotFoundError(\"No module named 'textual'\", name='textual')")
    program = (
        "import rlprof.top.start as start\n"
        "try: start.show_dashboard(None, 1.0)\n"
        "except start.RlprofError as error: print(error)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )  # fmt: skip
    assert done.stdout == "the dashboard needs textual. Install it with: pip install 'rlprof[top]'\n"
