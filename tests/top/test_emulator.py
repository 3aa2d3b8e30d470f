"""The pane with the training's output: what a terminal would show, at a bounded cost."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress
from tqdm import tqdm

from rlprof.top.emulator import Emulator


def shown(emulator):
    return [line.plain for line in emulator.written()]


def test_lines_scroll_and_the_newest_are_shown():
    emulator = Emulator(3, 20)
    emulator.feed(b"".join(b"line %d\n" % number for number in range(10)))
    assert shown(emulator) == ["line 8", "line 9"]


def test_a_progress_bar_of_tqdm_takes_one_line():
    file = io.StringIO()
    for _ in tqdm(range(50), file=file, ncols=60, mininterval=0):
        pass
    emulator = Emulator(5, 80)
    emulator.feed(file.getvalue().encode())
    (line,) = shown(emulator)
    assert line.startswith("100%|")
    assert "50/50" in line


def test_a_progress_bar_of_rich_takes_one_line():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=60, color_system="truecolor", legacy_windows=False)
    with Progress(console=console, auto_refresh=False) as progress:
        task = progress.add_task("training", total=5)
        for _ in range(5):
            progress.update(task, advance=1, refresh=True)
    emulator = Emulator(5, 60)
    emulator.feed(file.getvalue().encode())
    (line,) = shown(emulator)
    assert line.startswith("training")
    assert "100%" in line


def test_colours_and_attributes_are_kept():
    emulator = Emulator(2, 40)
    emulator.feed(b"\x1b[1;31mred\x1b[0m \x1b[38;5;208morange\x1b[0m \x1b[38;2;1;2;3mrgb\x1b[0m \x1b[93;7mbright")
    (line,) = emulator.written()
    styles = [str(span.style) for span in line.spans]
    assert line.plain == "red orange rgb bright"
    for expected in ("bold red", "#ff8700", "#010203", "reverse bright_yellow"):
        assert any(expected in style for style in styles), (expected, styles)


@pytest.mark.parametrize("noise", [
    b"\x1b[?;;m", b"\x1b]0;title\x07", b"\x1b[99999;99999H", b"\xff\xfe\x80", b"\x1b[?1049h\x1b[2J",
    b"\x1b[1000000000A",
    b"\x1bP1$q\x1b\\", bytes(range(256)), b"\x1b[38;5m", b"\x1b[?25l\x1b[>c", b"\x1b[4:3m", "日本語".encode()[:-1],
])  # fmt: skip
def test_what_no_terminal_understands_does_no_harm(noise):
    emulator = Emulator(3, 20)
    emulator.feed(noise * 3)
    emulator.forget_style()
    emulator.feed(b"\n\n\n\nafter\n")
    assert shown(emulator)[-1] == "after"
    assert all(line.cell_len <= 20 for line in emulator.lines())


def test_a_smaller_pane_keeps_the_lines_around_the_cursor():
    emulator = Emulator(6, 20)
    emulator.feed(b"one\ntwo\nthree\n")
    emulator.resize(2, 10)
    assert shown(emulator) == ["three"]
    emulator.feed(b"four\nfive")
    assert shown(emulator) == ["four", "five"]
    emulator.resize(5, 30)
    emulator.feed(b"\nsix")
    assert shown(emulator) == ["four", "five", "six"]


def test_wide_characters_take_two_cells():
    emulator = Emulator(2, 10)
    emulator.feed("環境環境環境".encode())
    assert [line.cell_len for line in emulator.lines()] == [10, 2]
