"""Sessions for tests: of a profiler with a fake clock, flushed on request, and of small programs in other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from fakes import Fake

from rlprof import SpanCost
from rlprof.analysis.facts import Facts, gather_facts
from rlprof.analysis.report import Report, build_report
from rlprof.session.info import Info
from rlprof.session.reader import Session
from rlprof.session.records import Flush, Sample
from rlprof.session.writer import SessionWriter

INFO = Info(
    name="planted",
    started=1_790_000_000_000_000_000,
    origin=0,
    pid=1234,
    command=("python", "train.py", "--seed", "1"),
    folder="/home/user/project",
    python="3.11.7",
    platform="Linux 6.1 x86_64",
    host="machine",
    processor="A processor",
    cores=4,
    machine_cores=4,
    memory=16 << 30,
    core="c",
    packages={"rlprof": "0.1.0"},
    settings={"envs": 8},
)


class Written:
    """A profiler with a fake clock, and its session."""

    def __init__(self, folder: Path, fake: Fake | None = None, cost: SpanCost | None = None, **writer: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "session.db"
        self.fake = fake or Fake("auto", start=0)
        self.fake.profiler.span_costs = [cost or SpanCost()]
        self.writer = SessionWriter(self.path, INFO, **writer)
        self.samples: list[Sample] = []

    def batch(self) -> Flush:
        profiler = self.fake.profiler
        iterations, gains = profiler.drain_iterations()
        events, lost = profiler.drain_timeline()
        samples, self.samples = self.samples, []
        raw = profiler.ledger.raw() | {"process_peak": 64 << 20}
        return Flush(
            time=self.fake.wall,
            raw=raw,
            after_ns=raw["now"] - raw["trained"] if raw["trained"] else 0,
            costs=profiler.span_costs,
            resets=profiler.resets,
            iterations=iterations,
            gains=gains,
            samples=samples,
            events=events,
            events_lost=lost,
        )

    def flush(self) -> None:
        self.writer.write(self.batch())

    def end(self, how: str = "finished") -> Path:
        self.fake.profiler.disable()
        self.flush()
        self.writer.end(how)
        self.writer.close()
        return self.path

    def work(self, operation: str, wall: int, cpu: int | None = None, **options: Any) -> None:
        with self.fake.profile(operation, **options):
            self.fake.tick(wall, cpu)


def sample(time: int, **figures: Any) -> Sample:
    """A sample of one second of a process that uses half a core."""
    usual: dict[str, Any] = {
        "weight": 10**9, "cpu": 50.0, "children_cpu": 0.0, "machine_cpu": 25.0, "held_up": 0.0, "rss": 100 << 20,
        "allocated": None, "children_rss": 0, "children": 0, "machine_available": 8 << 30, "device_busy": None,
        "device_memory": None, "cost": 100_000,
    }  # fmt: skip
    return Sample(time=time, **(usual | figures))


def facts_of(path: Path) -> Facts:
    with Session(path) as session:
        facts = gather_facts(session)
    facts.check()
    return facts


def report_of(path: Path) -> Report:
    with Session(path) as session:
        report = build_report(session)
    report.facts.check()
    return report


def rlprof(
    *words: object, code: int | None = 0, module: str = "rlprof", **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run `rlprof WORDS` in another process. It must exit with this code, if one is given."""
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    assert code in (None, done.returncode), done.stdout + done.stderr
    return done


def start_program(program: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Start a program in another process. Its sessions go to the folder."""
    environ = {**os.environ, "RLPROF_DIR": str(folder), "PYTHONUNBUFFERED": "1", **environment}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
    )  # fmt: skip


def run_program(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    process = start_program(program, folder, **environment)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
