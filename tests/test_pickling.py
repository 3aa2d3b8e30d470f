"""What a training sends to its workers: environments that use spans, from a script that they cannot import."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import sys
    import cloudpickle
    import rlprof
    from rlprof import profile, profile_function

    @profile_function("module_level")
    def module_level(x):
        return x + 1

    class Env:
        @profile_function("env_step")
        def step(self, action):
            with profile("physics"):
                return module_level(action)

        @classmethod
        @profile_function("make")
        def make(cls):
            return cls()

    def factory():
        local = profile("local")(lambda x: x * 2)
        return lambda: (Env.make(), local)

    sys.stdout.buffer.write(cloudpickle.dumps(factory()))
"""

WORKER = """
    import pickle, sys
    import rlprof
    make = pickle.loads(sys.stdin.buffer.read())
    rlprof.enable()
    env, local = make()
    assert env.step(1) == 2 and local(4) == 8
    snapshot = rlprof.snapshot()
    print(*sorted((account.operation, account.calls) for account in snapshot.accounts))
"""


@pytest.mark.parametrize("core", ["c", "python"])
def test_a_worker_gets_the_scripts_environments_with_their_spans(core):
    def run(program: str, **options: object) -> bytes:
        command = [sys.executable, "-c", textwrap.dedent(program)]
        done = subprocess.run(command, capture_output=True, env={"RLPROF_CORE": core}, check=False, **options)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    printed = run(WORKER, input=run(SCRIPT)).decode()
    assert printed.split("\n")[0] == "('env_step', 1) ('local', 1) ('make', 1) ('module_level', 1) ('physics', 1)"
