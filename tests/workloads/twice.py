"""A program that trains a workload without rlprof, recorded, and a variant without rlprof. Prints the scores as JSON.

python twice.py WORKLOAD FOLDER [KEY=VALUE ...] [-- KEY=VALUE ...]
"""

from __future__ import annotations

import json
import sys

from rlprof.run.start import drive
from rlprof.workloads import find_workload
from rlprof.workloads.progress import Progress
from rlprof.workloads.settings import make_settings, read_overrides


def main() -> None:
    name, folder, *rest = sys.argv[1:]
    words, varied = (rest[: rest.index("--")], rest[rest.index("--") + 1 :]) if "--" in rest else (rest, [])
    workload = find_workload(name)
    settings, variant = (
        make_settings(workload.settings, ("words", read_overrides(words)), ("variant", read_overrides(more)))
        for more in ([], varied)
    )
    program = workload.load()
    alone, recorded, other = (Progress(name, workload.score, show=False) for _ in range(3))
    program.train(settings, alone)
    if varied:
        program.train(variant, other)
    with drive({"name": name, "dir": folder, "quiet": True}) as recording:
        program.train(settings, recorded)
    result = {"alone": alone.scores, "recorded": recorded.scores, "variant": other.scores, "steps": recorded.steps}
    sys.stdout.write(json.dumps({**result, "session": str(recording.folder)}) + "\n")


if __name__ == "__main__":
    main()
