"""`rlprof top --once`: one frame as text, with the figures of the report."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from frames import frame, stuck_frame
from rich.console import Console
from sessions import Written, report_of, run_program, sample

from rlprof.analysis.figures import duration, percent, rate
from rlprof.cli.top import top
from rlprof.errors import RlprofError
from rlprof.live.choose import running_session
from rlprof.render.layout import as_text, plain
from rlprof.top.once import render

MS = 1_000_000


def plant(folder):
    written = Written(folder)
    profiler = written.fake.profiler
    for turn in range(40):
        with profiler.iteration():
            with written.fake.profile("rollout"):
                written.work("env_step", 20 * MS)
                written.work("policy_forward", 10 * MS)
            with written.fake.profile("update"):
                written.work("backward", 15 * MS + turn * 1_000)
            profiler.add_steps(64)
        written.samples.append(sample(written.fake.wall))
    return written


def invoke(*words, **variables):
    done = CliRunner().invoke(top, list(map(str, words)), env={"COLUMNS": "100", **variables})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_the_figures_are_those_of_the_report(tmp_path):
    written = plant(tmp_path / "run_20260101-120000")
    path = written.end()
    report = report_of(path)
    text = invoke(path.parent, "--once").output
    assert f"{rate(report.facts.progress.steps_per_second)} steps/s mean" in text
    assert "40 iterations" in text
    assert "2,560 steps" in text
    assert "finished" in text
    for row in report.facts.breakdown.rows:
        if row.share >= 0.05:
            (line,) = [line for line in text.splitlines() if re.search(rf"│ +{row.operation} ", line)]
            assert percent(row.share) in line
            assert duration(row.subtree_ledger_ns) in line


def test_lines_end_without_spaces_and_have_no_control_characters(tmp_path):
    path = plant(tmp_path / "run").end()
    text = invoke(path.parent, "--once").output
    lines = text.splitlines()
    assert {len(line) for line in lines} == {100}
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "q quit" not in text


def test_without_a_terminal_one_frame_is_printed(tmp_path):
    path = plant(tmp_path / "run").end()
    assert invoke(path).output == invoke(path, "--once").output


def test_the_newest_session_is_the_default(tmp_path):
    for name in ("old_20260101-120000", "new_20260102-120000"):
        plant(tmp_path / name).end()
    first = invoke("--once", RLPROF_DIR=str(tmp_path)).output
    assert first == invoke(tmp_path / "new_20260102-120000", "--once").output


GARBAGE = {"no database": b"garbage" * 1_000, "empty": b"", "cut": b"SQLite format 3\0" + b"\0" * 500}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_newest_session_that_cannot_be_read_is_not_the_default(content, tmp_path):
    plant(tmp_path / "good_20260101-120000").end()
    bad = tmp_path / "garbage_1"  # without a time in its name, that of its file counts
    bad.mkdir()
    (bad / "session.db").write_bytes(content)
    assert "good" in str(running_session(tmp_path))
    assert "finished" in invoke("--once", RLPROF_DIR=str(tmp_path)).output
    program = (
        "import rlprof\n"
        "from pathlib import Path\n"
        "from rlprof.live.choose import running_session\n"
        f"parent = Path({str(tmp_path)!r})\n"
        "with rlprof.record('running') as recording:\n"
        "    recording.folder.rename(parent / 'running_20250101-000000')\n"
        "    assert running_session(parent).name == 'running_20250101-000000'\n"
        "    (parent / 'running_20250101-000000').rename(recording.folder)\n"
    )
    done = run_program(program, tmp_path)
    assert done.returncode == 0, done.stderr


def test_if_no_session_can_be_read_the_reason_is_that_of_the_newest(tmp_path):
    (tmp_path / "garbage_1").mkdir()
    (tmp_path / "garbage_1" / "session.db").write_bytes(b"garbage")
    with pytest.raises(RlprofError, match=r"garbage_1/session\.db is not an SQLite file"):
        invoke("--once", RLPROF_DIR=str(tmp_path))


def test_a_terminal_without_unicode_gets_ascii():
    text = plain(lambda console: render(frame(), console), 100, "ascii")
    text.encode("ascii")
    assert "?" not in text
    assert "|" in text


@pytest.mark.parametrize("width", [60, 100, 140])
def test_the_text_has_the_width_of_the_console(width):
    assert {len(line) for line in as_text(render)(frame(), width).splitlines()} == {width}


def test_for_a_stuck_training_it_says_which_command_shows_where():
    assert as_text(render)(stuck_frame(), 100).splitlines()[-1] == "`rlprof stacks` shows where."
    text = plain(lambda console: render(stuck_frame(), console, given="my runs/x\x1b"), 100, "utf-8")
    assert text.splitlines()[-1] == "`rlprof stacks 'my runs/x\\x1b'` shows where."
    assert "rlprof stacks" not in as_text(render)(frame(), 100)


def test_no_style_is_printed():
    with open("/dev/null", "w") as file:
        console = Console(file=file, width=100, force_terminal=True, record=True)
        render(frame(), console)
    assert "\x1b" not in console.export_text(styles=True)


def test_a_session_that_does_not_exist_is_one_sentence(tmp_path):
    with pytest.raises(RlprofError, match="does not exist"):
        invoke(tmp_path / "nothing", "--once")
    with pytest.raises(RlprofError, match="There is no session in"):
        invoke("--once", RLPROF_DIR=str(tmp_path))


@pytest.mark.parametrize("interval", ["0.1s", "soon", "-1"])
def test_an_interval_that_makes_no_sense_is_refused(interval):
    done = invoke("--interval", interval)
    assert done.exit_code == 2
    assert interval in done.output
