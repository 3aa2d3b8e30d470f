"""Measure how fast rlprof and other readers load traces, and how much memory they need.

Each reader loads each file in a new process, so that its peak of memory is its own. All readers run once per round, in
random order, and ratios are taken within a round. Imports are not counted, neither their time nor their memory. The
file is in the file system's cache for all readers.

    rlprof         loads the plain file into columns
    rlprof gz      loads the gzipped file into columns
    orjson, json   `loads` of the bytes of the plain file
    hta            HolisticTraceAnalysis as its users load a trace: `TraceAnalysis(...)` of the gzipped file
    hta parser     only its parser, into a pandas frame

The last two are measured if HolisticTraceAnalysis is installed and can read the file.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from _common import Bar, Options, conclude, describe_machine, empty_table, progress
from rich.table import Table

BARS = (
    Bar("ratio_to_orjson", "<=", 0.35),
    Bar("ratio_to_orjson_gz", "<=", 0.6),
    Bar("memory_ratio", "<=", 1.0),
    Bar("ratio_to_hta", "<=", 0.05),
    Bar("synthetic_memory_gb", "<=", 2.0, " GB"),
)
GB = 1e9
PACKED = ("rlprof gz", "hta", "hta parser")
"""Readers of the gzipped file."""

_QUIET = "import logging; logging.disable(logging.CRITICAL); "
READERS = {
    "rlprof": ("from rlprof.trace.read import read_trace", "read_trace(path)"),
    "rlprof gz": ("from rlprof.trace.read import read_trace", "read_trace(path)"),
    "orjson": ("import orjson", "orjson.loads(open(path, 'rb').read())"),
    "json": ("import json", "json.loads(open(path, 'rb').read())"),
    "hta": (
        _QUIET + "from hta.trace_analysis import TraceAnalysis",
        "TraceAnalysis(trace_files={0: path}, trace_dir='.')",
    ),
    "hta parser": (
        _QUIET + "import hta.common.trace_parser as hta; from hta.configs.parser_config import ParserConfig",
        "hta.parse_trace_dataframe(path, ParserConfig.get_default_cfg())",
    ),
}
"""What each reader imports before the measurement, and how it loads a file."""
RATIOS = {
    "ratio_to_orjson": ("rlprof", "orjson"),
    "ratio_to_orjson_gz": ("rlprof gz", "orjson"),
    "ratio_to_json": ("rlprof", "json"),
    "ratio_to_hta": ("rlprof gz", "hta"),
    "ratio_to_hta_parser": ("rlprof gz", "hta parser"),
}
PROGRAM = """
import re, sys, time
path = sys.argv[1]
{prepare}
def resident(what):
    return 1024 * int(re.search(what + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
before = resident("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # resets the peak
began = time.perf_counter()
kept = {read}
seconds = time.perf_counter() - began
print(seconds, resident("VmHWM") - before)
"""


def read_once(reader: str, path: Path) -> tuple[float, float] | None:
    """Seconds and peak memory in bytes, or None if the reader fails."""
    prepare, read = READERS[reader]
    program = PROGRAM.format(prepare=prepare, read=read)
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        progress(f"  {reader} fails on {path.name}: {done.stderr.strip().splitlines()[-1:]}")
        return None
    seconds, size = done.stdout.split()[-2:]
    return float(seconds), float(size)


def measure(source: Path, folder: Path, rounds: int) -> dict[str, Any]:
    data = source.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    plain, packed = folder / "trace.json", folder / "trace.json.gz"
    plain.write_bytes(text)
    packed.write_bytes(data if text is not data else gzip.compress(text, 6))
    size = len(text)
    del data, text
    seconds: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    readers = list(READERS)
    for number in range(rounds):
        for reader in random.Random(number).sample(readers, len(readers)):
            found = read_once(reader, packed if reader in PACKED else plain)
            if found is None:
                readers.remove(reader)
                continue
            seconds.setdefault(reader, []).append(found[0])
            memory.setdefault(reader, []).append(found[1])
    taken = {reader: median(values) for reader, values in seconds.items()}
    return {
        "bytes": size,
        "seconds_per_gb": {reader: value / (size / GB) for reader, value in taken.items()},
        "memory_ratio": {reader: median(values) / size for reader, values in memory.items()},
        **{figure: paired(seconds, one, other) for figure, (one, other) in RATIOS.items()},
    }


def paired(seconds: dict[str, list[float]], one: str, other: str) -> float | None:
    """The median over rounds of the ratio within a round."""
    ratios = [mine / its for mine, its in zip(seconds.get(one, ()), seconds.get(other, ()))]
    return median(ratios) if ratios else None


def of_all(files: dict[str, Any], one: str, other: str) -> float | None:
    """The ratio of the times for all files that both readers can read."""
    both = [found for found in files.values() if {one, other} <= found["seconds_per_gb"].keys()]
    mine, its = (sum(found["seconds_per_gb"][reader] * found["bytes"] for found in both) for reader in (one, other))
    return mine / its if its else None


def synthetic(path: Path, size: int) -> None:
    """Write a GPU trace of the given size: operators, runtime calls and kernels, with a step after each 5,000."""
    with path.open("wb") as file:
        file.write(b'{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "made up"}], "traceEvents": [\n')
        number, time = 0, 1_700_000_000_000_000
        while file.tell() < size:
            events = []
            for _ in range(5000):
                number += 1
                time += 20
                events += [
                    {"ph": "X", "cat": "cpu_op", "name": f"aten::op_{number % 200}", "pid": 9, "tid": 9, "ts": time,
                     "dur": 18.25, "args": {"External id": number, "Ev Idx": number, "Input Dims": [[64, 128], [128]]}},
                    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": time + 2,
                     "dur": 5.5, "args": {"External id": number, "cbid": 211, "correlation": number}},
                    {"ph": "s", "id": number, "pid": 9, "tid": 9, "ts": time + 2, "cat": "ac2g", "name": "ac2g"},
                    {"ph": "X", "cat": "kernel", "name": f"void kernel_{number % 150}<float>(int, float*)", "pid": 0,
                     "tid": 7, "ts": time + 12, "dur": 6.125,
                     "args": {"External id": number, "device": 0, "context": 1, "stream": 7, "correlation": number,
                              "registers per thread": 32, "grid": [64, 1, 1], "block": [256, 1, 1]}},
                    {"ph": "f", "id": number, "pid": 0, "tid": 7, "ts": time + 12, "cat": "ac2g", "name": "ac2g"},
                ]  # fmt: skip
            step = number // 5000
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 9, "tid": 9,
                           "ts": time - 99_980, "dur": 100_000})  # fmt: skip
            file.write(b",\n".join(json.dumps(event).encode() for event in events) + b",\n")
        file.write(b'{"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "python"}}\n]}\n')


def table(results: dict[str, Any]) -> Table:
    shown = empty_table("Seconds per GB of JSON, and peak memory relative to the size of the JSON", "file", *READERS)
    for name, found in results["files"].items():
        cells = [
            f"{found['seconds_per_gb'][reader]:.1f} s, {found['memory_ratio'][reader]:.1f}x"
            if reader in found["seconds_per_gb"]
            else "-"
            for reader in READERS
        ]
        shown.add_row(name, *cells)
    return shown


def main() -> None:
    parser = Options(__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="trace, gzipped or plain")
    parser.number("--rounds", 5, "number of rounds")
    parser.number("--synthetic", 2.0, "also load a generated trace of this size in GB, 0 for none")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": describe_machine(), "files": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in options.files:
            progress(f"{path.name}")
            results["files"][path.name] = measure(path, folder, options.rounds)
        results["synthetic_memory_gb"] = None
        if options.synthetic:
            if shutil.disk_usage(folder).free < 2 * options.synthetic * GB:
                progress(f"skipped the generated trace: no room for {options.synthetic} GB")
            else:
                progress(f"generated trace of {options.synthetic} GB")
                large = folder / "large.json"
                synthetic(large, int(options.synthetic * GB))
                found = read_once("rlprof", large)
                assert found is not None
                results["synthetic"] = {
                    "bytes": large.stat().st_size, "seconds": found[0],
                    "seconds_per_gb": found[0] / (large.stat().st_size / GB), "memory_gb": found[1] / GB,
                }  # fmt: skip
                results["synthetic_memory_gb"] = found[1] / GB
    results |= {figure: of_all(results["files"], one, other) for figure, (one, other) in RATIOS.items()}
    counted = [found for found in results["files"].values() if found["bytes"] > 10e6] or list(results["files"].values())
    results["memory_ratio"] = max(found["memory_ratio"]["rlprof"] for found in counted)
    conclude(results, BARS, options, table(results))


if __name__ == "__main__":
    main()
