"""Builds the C parts: the ledger's core, and the scanner of traces. All else about the package is in pyproject.toml.

RLPROF_SANITIZE=1 builds it with AddressSanitizer and UndefinedBehaviorSanitizer, for `make sanitize`. RLPROF_CFLAGS has
more arguments for the compiler.
"""

import os
from glob import glob

from setuptools import Extension, setup

compile_args = ["-std=gnu11", "-O3", "-fno-semantic-interposition", "-fvisibility=hidden", "-Wall", "-Wextra"]
compile_args += os.environ.get("RLPROF_CFLAGS", "").split()
link_args = []
if os.environ.get("RLPROF_SANITIZE"):
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    compile_args += [*sanitizers, "-O1", "-g", "-fno-omit-frame-pointer"]
    link_args += sanitizers


def extension(name: str, folder: str) -> Extension:
    return Extension(
        name,
        sources=sorted(glob(f"{folder}/*.c")),
        depends=sorted(glob(f"{folder}/*.h")),
        libraries=["m"],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
        # Without a compiler the package installs and runs on the Python twins.
        optional=True,
    )


setup(
    ext_modules=[
        extension("rlprof.ledger._core", "src/rlprof/ledger/core"),
        extension("rlprof.trace._scan", "src/rlprof/trace/core"),
    ]
)
