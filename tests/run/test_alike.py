"""Under `rlprof run` a program prints the same and ends the same way as without it."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from alike import alone, only_session, printed, recorded
from sessions import facts_of

PROGRAMS = {
    "what it is": """
        import sys
        print(sys.argv, sys.orig_argv, __name__, __file__, __spec__, sys.path, sys.flags, sorted(globals()))
        print("sitecustomize" in sys.modules, sys.modules["__main__"].__dict__ is globals())
        print(sys.stdin.isatty(), sys.stdout.encoding, sys.stderr.encoding, sys.stdout.line_buffering)
        """,
    "its process": """
        import gc, os, resource, signal, sys, threading
        print(threading.active_count(), threading.enumerate() == [threading.main_thread()], gc.get_threshold())
        print(sys.getswitchinterval(), sys.getrecursionlimit(), sys.gettrace(), sys.getprofile(), os.getcwd())
        print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGCHLD))
        print(resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0o22), sys.excepthook is sys.__excepthook__)
        """,
    "its source and pickles": """
        import inspect, pickle, sys
        class Agent:
            weight = 3
        print(inspect.getsource(Agent), inspect.getsourcefile(Agent), inspect.getsource(sys.modules["__main__"]))
        print(pickle.dumps(Agent()), pickle.loads(pickle.dumps(Agent)).weight)
        """,
    "reads its input": "print(sum(int(line) for line in __import__('sys').stdin))",
    "an exit code": "raise SystemExit(3)",
    "an exit text": "import sys; sys.exit('no reward')",
    "an exit with the code of an error": """
        import sys
        class Refused(Exception): code = 4
        sys.exit(Refused("no"))
        """,
    "an exit with nonsense": "import sys; sys.exit((1, 2))",
    "an exit that is caught": """
        import sys
        try:
            sys.exit(3)
        except SystemExit as error:
            print(repr(error), error.code, error.__context__, type(error).__getattribute__, sys.exit, sys.excepthook)
        """,
    "an exit of its own": "class Done(SystemExit): pass\n        raise Done(5)",
    "a traceback": "def train(): raise ValueError('diverged')\n        train()",
    "raises KeyboardInterrupt": "raise KeyboardInterrupt",
    "a syntax error": "def train(:",
    "an import error": "import no_such_module_here",
    "leaves at once": "import os; print('printed', flush=True); os._exit(5)",
    "leaves at once with nonsense": """
        import os
        try:
            os._exit("five")
        except TypeError as error:
            print(error)
        """,
    "aborts": "import os; os.abort()",
    "SIGINT": "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)",
    "SIGTERM": "import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)",
    "SIGHUP": "import os, signal, time; os.kill(os.getpid(), signal.SIGHUP); time.sleep(9)",
    "SIGKILL": "import os, signal; print('gone', flush=True); os.kill(os.getpid(), signal.SIGKILL)",
    "a handler of its own": """
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)
        """,
    "catches an interrupt": """
        import os, signal, time
        try:
            os.kill(os.getpid(), signal.SIGINT); time.sleep(9)
        except KeyboardInterrupt:
            print("caught")
        """,
    "handlers at exit": """
        import atexit
        atexit.register(print, "last")
        atexit.register(lambda: print("first"))
        class Agent:
            def __del__(self): print("deleted")
        agent = Agent()
        """,
    "closes its output": "import sys; print('before'); sys.stdout.close()",
    "closes its errors": "import sys; print('before'); sys.stderr.close()",
    "closes all files": "import os; print('before', flush=True); os.closerange(0, 3)",
    "replaces its output": """
        import io, sys
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        print("unseen"); print("unseen", file=sys.stderr)
        """,
    "opens a file in place of its errors": """
        import os
        os.close(2)
        opened = os.open("errors.txt", os.O_CREAT | os.O_RDWR)
        print(opened, flush=True)
        import atexit; atexit.register(lambda: print(os.stat("errors.txt").st_size))
        """,
    "goes elsewhere": "import os; os.chdir('/'); print(os.getcwd())",
    "deletes its sessions": """
        import shutil, pathlib
        shutil.rmtree("sessions", ignore_errors=True); print("deleted")
        """,
    "warnings as errors": "import warnings; warnings.simplefilter('error'); print('strict')",
    "threads": """
        import threading
        thread = threading.Thread(target=lambda: print(threading.current_thread().name)); thread.start(); thread.join()
        print(threading.active_count())
        """,
    "asyncio": """
        import asyncio
        async def train():
            await asyncio.sleep(0.01); return 3
        print(asyncio.run(train()))
        """,
    "forks": """
        import os
        child = os.fork()
        if child == 0:
            print("child", flush=True); os._exit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    "forks, and the child ends as programs do": """
        import os, sys
        child = os.fork()
        if child == 0:
            print("child"); sys.exit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    "execs": "import os, sys; print('old', flush=True); os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])",
    "execs what is not there": """
        import os
        try:
            os.execlp("no-such-program", "no-such-program")
        except FileNotFoundError as error:
            print(error)
        """,
    "daemonises": """
        import os, time
        if os.fork(): os._exit(0)
        os.setsid()
        if os.fork(): os._exit(0)
        time.sleep(0.2)
        print("daemon", flush=True)
        """,
    "children": """
        import os, subprocess, sys
        program = "import sys; print(sys.argv, sys.path[1:], 'sitecustomize' in sys.modules); sys.exit(6)"
        done = subprocess.run([sys.executable, "-c", program, "x"], capture_output=True, text=True)
        print(done.stdout, done.stderr, done.returncode)
        """,
    "multiprocessing": """
        import multiprocessing
        def square(n): return n * n
        if __name__ == "__main__":
            for method in ("fork", "forkserver", "spawn"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    print(method, pool.map(square, range(5)))
        """,
    "a process pool": """
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
        def square(n): return n * n
        if __name__ == "__main__":
            for executor in (ProcessPoolExecutor, ThreadPoolExecutor):
                with executor(2) as pool:
                    print(list(pool.map(square, range(5))))
        """,
    "random numbers": "import random, tempfile; random.seed(3); print(random.random(), random.getstate()[1][:3])",
}


def write(folder: Path, program: str) -> str:
    lines = program.strip("\n").splitlines()
    (folder / "train.py").write_text("\n".join(line.removeprefix("        ") for line in lines) + "\n")
    return "train.py"


def behaves_the_same(words: list[str], folder: Path, stdin: str) -> None:
    expected = alone(words, folder, stdin)
    (folder / "errors.txt").unlink(missing_ok=True)
    done = recorded(words, folder, stdin)
    assert (done.stdout, done.returncode) == (expected.stdout, expected.returncode)
    assert printed(done.stderr) == expected.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_behaves_as_without_rlprof(name, tmp_path):
    script = write(tmp_path, PROGRAMS[name])
    numbers = "3\n4\n" if "input" in name else ""
    behaves_the_same([script, "--name", "x", "-m", "--"], tmp_path, numbers)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["folder", "archive", "module", "package", "missing", "input", "relative"])
def test_everything_that_python_can_run(kind, tmp_path):
    program = "import sys; print(sys.argv, __name__, __package__, sys.path[0], __file__)\n"
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "other.py").write_text("VALUE = 4\n")
    (tmp_path / "pack" / "train.py").write_text(program + "from .other import VALUE\nprint(VALUE)\n")
    (tmp_path / "pack" / "__main__.py").write_text(program)
    with zipfile.ZipFile(tmp_path / "pack.zip", "w") as archive:
        archive.writestr("__main__.py", program)
    words = {
        "folder": ["pack"],
        "archive": ["pack.zip"],
        "module": ["-m", "pack.train"],
        "package": ["-m", "pack"],
        "missing": ["-m", "pack.nothing"],
        "input": ["-"],
        "relative": ["./pack/../pack/__main__.py"],
    }[kind]
    program = program.replace(", __file__", "") if kind == "input" else ""
    behaves_the_same([*words, "a", "-b"], tmp_path, program)


@pytest.mark.parametrize("then", ["", "raise ValueError('broken')", "import nothing_here"])
def test_the_users_own_sitecustomize_still_runs(then, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(f"import sys; sys.runs = getattr(sys, 'runs', 0) + 1\n{then}\n")
    script = write(tmp_path, "import sys; print(sys.runs, sys.path, sys.modules.get('sitecustomize'))")
    path = os.pathsep.join([str(tmp_path / "site"), str(tmp_path)])
    expected = alone([script], tmp_path, PYTHONPATH=path)
    done = recorded([script], tmp_path, PYTHONPATH=path)
    assert done.stdout == expected.stdout
    assert printed(done.stderr) == 2 * expected.stderr  # the command line is a Python, too
    assert facts_of(only_session(tmp_path)).ended == "ended"


@pytest.mark.parametrize("module", ["platform", "psutil", "rich", "signal", "sqlite3"])
def test_a_module_beside_the_script_still_shadows_one_of_the_same_name(module, tmp_path):
    (tmp_path / f"{module}.py").write_text("WHOSE = 'mine'\n")
    script = write(tmp_path, f"import {module}; print(getattr({module}, 'WHOSE', 'theirs'))")
    expected = alone([script], tmp_path)
    assert recorded([script], tmp_path).stdout == expected.stdout
    assert only_session(tmp_path)


def test_environment_variables_of_python_stay(tmp_path):
    script = write(tmp_path, "import sys; print(sys.flags, sys.warnoptions, sys.path, sys.dont_write_bytecode)")
    variables = {"PYTHONOPTIMIZE": "1", "PYTHONWARNINGS": "error::UserWarning", "PYTHONSAFEPATH": "1", "PYTHONPATH": ""}
    assert recorded([script], tmp_path, **variables).stdout == alone([script], tmp_path, **variables).stdout


@pytest.mark.long
def test_pytest_has_the_same_results(tmp_path):
    (tmp_path / "test_training.py").write_text("""
import multiprocessing
import pytest
def test_passes(capfd):
    print("seen")
    assert capfd.readouterr().out == "seen\\n"
def test_fails():
    assert 1 == 2
def test_warns():
    with pytest.warns(UserWarning):
        __import__("warnings").warn("x")
def test_profiles():
    import rlprof
    with rlprof.profile("checked"):
        pass
def test_exits():
    with pytest.raises(SystemExit):
        raise SystemExit(3)
""")
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_training.py"]
    expected, done = alone(words, tmp_path), recorded(words, tmp_path)
    assert done.returncode == expected.returncode == 1
    assert done.stdout.splitlines()[:-1] == expected.stdout.splitlines()[:-1]  # the last one has its seconds
    assert "1 failed, 4 passed" in done.stdout
    assert facts_of(only_session(tmp_path)).session.name == "pytest"
