"""Builds the C core. Everything else about the package is in pyproject.toml.

RLPROF_SANITIZE=1 builds it with AddressSanitizer and UndefinedBehaviorSanitizer, for `make sanitize`.
"""

import os
from glob import glob

from setuptools import Extension, setup

compile_args = ["-std=gnu11", "-O3", "-fno-semantic-interposition", "-fvisibility=hidden", "-Wall", "-Wextra"]
link_args = []
if os.environ.get("RLPROF_SANITIZE"):
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    compile_args += [*sanitizers, "-O1", "-g", "-fno-omit-frame-pointer"]
    link_args += sanitizers

core = Extension(
    "rlprof.ledger._core",
    sources=sorted(glob("src/rlprof/ledger/core/*.c")),
    depends=sorted(glob("src/rlprof/ledger/core/*.h")),
    libraries=["m"],
    extra_compile_args=compile_args,
    extra_link_args=link_args,
    # Without a compiler the package installs and runs on the Python twin.
    optional=True,
)

setup(ext_modules=[core])
