"""If a session lacks the end of its run, every report shows how much is missing."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from sessions import facts_of, report_of, rlprof, run_program

from rlprof.report.formats import renderer
from rlprof.session import folder as folders
from rlprof.session.folder import write_private

FULL = """
import resource
from rlprof import get_profiler, profile, record

profiler = get_profiler()
def train(n):
    for _ in range(n):
        with profiler.iteration(), profile("env_step"):
            profiler.add_steps(3)

recording = record("run")
recording._wake.set()  # no flush but those of the test
recording._thread.join()
train(55)
recording.flush()
limit = (recording.folder / "session.db").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
train(1_633)
recording.flush()
print(profiler.snapshot().iterations)
"""


def only_session(folder: Path) -> Path:
    (session,) = folder.iterdir()
    return session


def test_what_could_not_be_written_is_counted(tmp_path):
    """55 iterations fit and 1,633 do not: the limit is the size that the file already has."""
    done = run_program(FULL + "recording.stop()", tmp_path)
    assert done.stdout == "1688\n", done.stderr
    facts = facts_of(only_session(tmp_path))
    assert (facts.progress.iterations, facts.progress.steps, facts.ended) == (55, 165, "finished")
    lost = facts.lost
    assert (lost.iterations, lost.steps, lost.calls) == (1_633, 3 * 1_633, 1_633)
    assert lost.wall_ns > 0
    assert "disk" in lost.because


@pytest.mark.parametrize("name", ["text", "markdown", "html", "json"])
def test_every_report_shows_what_is_missing(name, tmp_path):
    run_program(FULL + "recording.stop()", tmp_path)
    report = report_of(only_session(tmp_path))
    text = re.sub(r"<[^>]*>|\s+", " ", renderer(name)(report))
    if name == "json":
        assert json.loads(text)["facts"]["lost"]["iterations"] == 1_633
    else:
        assert "1,633 iterations" in text
        assert "could not be written" in text


def test_the_end_of_run_summary_shows_what_is_missing(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(FULL.replace('record("run")', "profiler.recording"))
    done = rlprof("run", script, env={**os.environ, "RLPROF_DIR": str(tmp_path / "runs")})
    (line,) = (line for line in done.stderr.splitlines() if "Incomplete" in line)
    assert line.startswith("rlprof: Incomplete: the last ")
    assert "with 1,633 iterations and 1,63" in line


def test_a_complete_session_lacks_nothing(tmp_path):
    program = FULL.replace("recording.flush()\nprint", "print") + (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\nrecording.stop()"
    )
    run_program(program, tmp_path)
    facts = facts_of(only_session(tmp_path))
    assert (facts.lost, facts.progress.iterations) == (None, 1_688)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "raw.json"
    write_private(path, b"whole")
    assert path.read_bytes() == b"whole"

    def full(self, content):
        with self.open("wb") as file:
            file.write(content[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders.Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_private(path, b"another")
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]
