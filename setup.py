"""Builds the C parts: the ledger's core, and the scanner of traces. All else about the package is in pyproject.toml.

RLPROF_REQUIRE_CORE=1: fail if they cannot be built. Otherwise the package installs without them and runs on its Python
twins. RLPROF_SANITIZE=address builds them with AddressSanitizer and UndefinedBehaviorSanitizer, RLPROF_SANITIZE=thread
with ThreadSanitizer, for `make sanitize`. RLPROF_CFLAGS has more arguments for the compiler.
"""

import os
import sys
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CompileError, LinkError

REQUIRED = os.environ.get("RLPROF_REQUIRE_CORE", "") not in ("", "0")
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"],
    "thread": ["-fsanitize=thread"],
}

compile_args = ["-std=gnu11", "-O3", "-fno-semantic-interposition", "-fvisibility=hidden", "-Wall", "-Wextra"]
compile_args += os.environ.get("RLPROF_CFLAGS", "").split()
link_args = []
if os.environ.get("RLPROF_SANITIZE"):
    sanitizers = SANITIZERS[os.environ["RLPROF_SANITIZE"]]
    compile_args += [*sanitizers, "-O1", "-g", "-fno-omit-frame-pointer"]
    link_args += sanitizers


def say_not_built(what: str, why: object) -> None:
    if REQUIRED:
        raise BaseError(f"{what} cannot be built: {why} (RLPROF_REQUIRE_CORE is set)")
    sys.stderr.write(
        f"rlprof: {what} is not built: {why}. rlprof will run on its Python twin, which costs about 100 times as much "
        "per span. RLPROF_REQUIRE_CORE=1 makes this an error.\n"
    )


class BuildOrSay(build_ext):
    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except (BaseError, CompileError, LinkError, OSError) as error:
            say_not_built(ext.name, f"{error}; are a C compiler and the headers of Python installed?")
            ext.optional = True  # nothing to be copied


def extensions() -> list[Extension]:
    # The loop's rules stand with the phases. They are compiled into the ledger's core, because every call passes both.
    folders = {
        "rlprof.ledger._core": ("src/rlprof/ledger/core", "src/rlprof/probes/core"),
        "rlprof.trace._scan": ("src/rlprof/trace/core",),
    }
    if "t" in getattr(sys, "abiflags", ""):
        say_not_built(" and ".join(folders), "free-threaded builds of Python have no interpreter lock, which it needs")
        return []
    return [
        Extension(
            name,
            sources=sorted(source for part in parts for source in glob(f"{part}/*.c")),
            depends=sorted(header for part in parts for header in glob(f"{part}/*.h")),
            include_dirs=list(parts),
            libraries=["m"],
            extra_compile_args=compile_args,
            extra_link_args=link_args,
        )
        for name, parts in folders.items()
    ]


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildOrSay})
