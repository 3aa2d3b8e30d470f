"""The doctor's page, read as a person at a terminal would."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from doctor.test_rules import barely_measured, good_machine
from rich.cells import cell_len
from rich.console import Console

from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.machine.software import Gpu
from rlprof.doctor.machine.torch import Threading
from rlprof.doctor.rules import judge
from rlprof.doctor.rules.finding import Finding
from rlprof.doctor.text import render, to_text

PROBLEM = Finding("busy", "bad", "Other programs keep 62% of 8 cores busy.", "They take time.", "see what runs (top)")
HINT = Finding("small_shm", "hint", "/dev/shm has 64 MiB.", "Workers need it.", "docker run --shm-size=8g")


def sick() -> Machine:
    good = good_machine()
    return replace(
        good,
        cores=replace(good.cores, quota=2.0, busy_share=0.9),
        compute=replace(good.compute, crowded=Threading(4e6, 190e6)),
        disk=replace(good.disk, folder="/mnt/" + "環境" * 60, filesystem="nfs4"),
    )


def row(text: str, name: str) -> str:
    (found,) = [line for line in text.splitlines() if line.strip().startswith(name + " ")]
    return found.strip().removeprefix(name).strip()


def test_a_good_machine_has_no_problems():
    assert to_text(good_machine(), ()).startswith("No problems found.\n\ncores ")


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([PROBLEM], "1 problem found."),
        ([PROBLEM, PROBLEM, HINT], "2 problems and 1 hint found."),
        ([HINT, HINT], "2 hints found."),
    ],
)
def test_the_first_line_is_the_verdict(findings, verdict):
    assert to_text(good_machine(), findings).splitlines()[0] == verdict


def test_a_finding_has_its_reason_and_its_fix_before_the_figures():
    text = to_text(good_machine(), [PROBLEM, HINT])
    assert (
        "\n\nbad   Other programs keep 62% of 8 cores busy.\n      They take time.\n      Fix: see what runs (top)\n"
        "\nhint  /dev/shm has 64 MiB.\n      Workers need it.\n      Fix: docker run --shm-size=8g\n\ncores "
    ) in text


def test_a_quick_look_names_what_it_skipped():
    text = to_text(replace(good_machine(), quick=True, compute=None, processes=None), (), 200)
    assert "--quick skipped torch and starting processes." in text.splitlines()[0]
    assert row(text, "torch") == "not measured"
    assert row(text, "processes") == "not measured"


def test_the_figures_are_those_measured():
    text = to_text(good_machine(), (), 100)
    assert row(text, "span cost") == "80 ns +- 3 ns (C core, clock tsc, CPU time rseq)"
    assert row(text, "memory copy") == "10.0 GB/s, one thread"
    assert row(text, "disk") == "runs, ext4, 100 GB free, fsync 700 us (worst 2.00 ms)"
    assert row(text, "torch") == "2.13.0, 8 threads, 8 interop, OMP_NUM_THREADS=8, import 2.00 s"
    assert row(text, "matrix") == "512 x 512, 268 GFLOP/s: 1 thread 3.00 ms, 8 threads 1.00 ms"
    assert row(text, "crowded") == "learning, every core busy: 1 thread 4.00 ms, 8 threads 4.00 ms"
    assert row(text, "not installed") == "tensorboard (rlprof[tensorboard])"


def test_what_was_not_measured_has_no_figure():
    text = to_text(barely_measured(), ())
    assert row(text, "memory copy") == "not measured"
    assert row(text, "other programs") == "unknown share of the cores busy"
    assert row(text, "GPU") == "none found"
    assert "/dev/shm" not in text
    assert "None" not in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_console_or_ends_in_spaces(width):
    machine = sick()
    file = io.StringIO()
    render(machine, judge(machine), Console(file=file, width=width, color_system=None, force_terminal=False))
    lines = file.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= min(width, 100)
    assert all(line == line.rstrip() for line in lines)


def test_eighty_columns_have_a_line_for_each_figure_of_a_good_machine():
    figures = to_text(good_machine(), (), 80).split("\n\n")[1]
    assert not any(line.startswith("    ") for line in figures.splitlines())


def test_names_from_outside_are_shown_as_they_are():
    good = good_machine()
    machine = replace(good, software=replace(good.software, gpus=(Gpu("[bold]H100[/bold]\x1b[31m"),)))
    assert row(to_text(machine, ()), "GPU") == "[bold]H100[/bold]\\x1b[31m"


def test_a_terminal_without_unicode_gets_ascii():
    machine = sick()
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    render(machine, judge(machine), Console(file=file, width=80))
    file.flush()
    assert "\\u74b0" in file.buffer.getvalue().decode("ascii")


def test_a_terminal_with_colour_tells_bad_from_hints():
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True, color_system="standard", _environ={})
    render(good_machine(), [PROBLEM, HINT], console)
    assert "\x1b[1;31mbad" in file.getvalue()
    assert "\x1b[1;33mhint" in file.getvalue()
