"""Output while a training runs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy
import pytest
from sessions import Written, facts_of, run_program

from rlprof import Profiler, RlprofWarning
from rlprof.api import record
from rlprof.render.running import to_summary
from rlprof.report.live_output import JsonLines, Summary, TensorBoard


def trained(written: Written, iterations: int = 3) -> None:
    for i in range(1, iterations + 1):
        with written.fake.profiler.iteration():
            written.work("env_step", i * 1_000_000)
            written.fake.tick(500_000)
            written.fake.profiler.add_steps(8)


def test_json_lines_have_one_object_per_iteration_that_adds_up(tmp_path, written):
    lines = JsonLines(tmp_path / "logs" / "run.jsonl")
    trained(written)
    lines(written.batch())
    trained(written, 1)
    lines(written.batch())
    lines.close()
    found = [json.loads(line) for line in (tmp_path / "logs" / "run.jsonl").read_text().splitlines()]
    assert [point["iteration"] for point in found] == [1, 2, 3, 4]
    assert [point["seconds"] for point in found] == [0.0015, 0.0025, 0.0035, 0.0015]
    assert found[1]["ledger"] == {"env_step": 0.002, "unattributed": 0.0005}
    assert found[1]["steps_per_second"] == pytest.approx(8 / 0.0025)
    for point in found:
        assert sum(point["ledger"].values()) == pytest.approx(point["seconds"])


def test_tensorboard_gets_the_scalars_of_each_iteration(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    written = Written(tmp_path)
    board = TensorBoard(tmp_path / "board")
    trained(written)
    board(written.batch())
    board.close()
    read = EventAccumulator(str(tmp_path / "board"))
    read.Reload()
    assert [(e.step, e.value) for e in read.Scalars("rlprof_speed/steps_per_second")] == [
        (1, pytest.approx(8 / 0.0015)), (2, pytest.approx(8 / 0.0025)), (3, pytest.approx(8 / 0.0035)),
    ]  # fmt: skip
    assert read.Scalars("rlprof_share_percent/env_step")[2].value == pytest.approx(100 * 3 / 3.5)


def test_a_summary_is_printed_every_so_many_iterations(capsys, written):
    summary = Summary(written.fake.profiler, 10)
    for _ in range(25):
        trained(written, 1)
        summary(written.batch())
    printed = capsys.readouterr().err
    assert re.findall(r"rlprof: (\d+) iterations", printed) == ["10", "20"]


def test_a_summary_is_short_and_has_the_largest_accounts(written):
    for place in range(30):
        written.work(f"operation number {place} with a name that is far too long for a line", 1_000)
    trained(written)
    text = to_summary(written.fake.snapshot())
    lines = text.splitlines()
    assert len(lines) <= 11
    assert max(map(len, lines)) <= 70
    assert lines[0] == "rlprof: 3 iterations in 7.53 ms, 3,187 steps/s"
    assert lines[2].split() == ["env_step", "79.7%", "6.00", "ms", "3"]
    assert lines[8].split()[:3] == ["25", "other", "operations"]
    assert lines[-2].split()[0] == "unattributed"
    shares = [float(line[30:37].strip().rstrip("%")) for line in lines[2:]]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    before = written.fake.snapshot()
    trained(written, 1)
    assert "(5,333 lately)" in to_summary(written.fake.snapshot(), before)


def test_a_progress_bar_is_not_torn(tmp_path):
    """tqdm draws its bar as one line again and again. The table is printed whole above it."""
    program = """
import time
from tqdm import tqdm
from rlprof import get_profiler, profile, record
with record("run", summary_every=5) as recording:
    with tqdm(total=20, mininterval=0, ascii=True) as bar:
        for i in range(20):
            with get_profiler().iteration(), profile("env_step"):
                time.sleep(0.002)
            bar.update()
            if i == 9:
                recording.flush()
"""
    done = run_program(program, tmp_path)
    drawn = done.stderr.replace("\r", "\n").splitlines()
    table = [place for place, line in enumerate(drawn) if line.startswith("rlprof: 10 iterations")]
    assert len(table) == 1
    assert drawn[table[0] + 2].split()[0] == "env_step"
    assert "it/s" not in drawn[table[0]]
    assert any("50%|" in line for line in drawn[table[0] :])  # drawn again below


def test_a_rich_progress_is_not_torn(tmp_path):
    program = """
import sys, time
from rich import get_console
from rich.progress import Progress
from rlprof import get_profiler, profile, record
get_console().file = sys.stderr
with record("run", summary_every=5) as recording, Progress(console=get_console()) as progress:
    task = progress.add_task("training", total=10)
    for i in range(10):
        with get_profiler().iteration(), profile("env_step"):
            pass
        progress.advance(task)
    recording.flush()
"""
    done = run_program(program, tmp_path)
    assert done.returncode == 0
    assert "rlprof: 10 iterations" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_writes_raw_json_and_a_summary_also_in_the_flat_layout(tmp_path):
    profiler = Profiler()
    with record("battle", dir=tmp_path / "runs", flat=tmp_path / "logs", profiler=profiler) as recording:
        with profiler.profile("env_step"):
            pass
    folder = Path(recording.folder)
    assert json.loads((folder / "raw.json").read_text())["facts"]["session"]["name"] == "battle"
    assert "env_step" in (folder / "summary.txt").read_text()
    assert (tmp_path / "logs" / "raw" / f"{folder.name}.json").read_text() == (folder / "raw.json").read_text()
    assert (tmp_path / "logs" / "reports" / f"{folder.name}_summary.txt").exists()


def test_the_session_is_named_after_the_script_by_default(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/train_ppo.py", "--seed", "1"])
    with record(dir=tmp_path, profiler=Profiler()) as recording:
        pass
    assert Path(recording.folder).name.startswith("train_ppo_2")
    with record("my run: <1>", dir=tmp_path, profiler=Profiler()) as recording:
        pass
    assert Path(recording.folder).name.startswith("my-run-1_2")
    assert facts_of(recording.folder).session.name == "my run: <1>"


def test_the_cost_of_flushing_is_in_the_session(tmp_path):
    with record("run", dir=tmp_path, profiler=Profiler()) as recording:
        for _ in range(3):
            recording.flush()
    assert facts_of(recording.folder).resources.flushing_share > 0


def test_an_output_that_cannot_be_made_is_left_out_with_a_warning(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(RlprofWarning, match="an output of the running training is left out"):
        recording = record("run", dir=tmp_path, jsonl=tmp_path / "file" / "x.jsonl", profiler=Profiler())
    recording.stop()
    assert (Path(recording.folder) / "raw.json").exists()


def test_settings_of_any_kind_are_kept_as_they_are_printed(tmp_path):
    odd = {"lr": float("nan"), "big": 10**30, 3: None}
    settings = {"envs": numpy.int64(8), "path": Path("a/b"), "net": {"width": 64}, **odd}
    with record("run", dir=tmp_path, profiler=Profiler(), settings=settings) as recording:
        pass
    assert facts_of(recording.folder).session.settings == {
        "envs": "8", "path": "a/b", "net": "{'width': 64}", "lr": "nan", "big": "1" + "0" * 30, "3": None,
    }  # fmt: skip
