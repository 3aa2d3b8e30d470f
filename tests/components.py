"""Components that a machine may lack."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(component: str) -> NoReturn:
    """Skip for a component this machine lacks; in CI, which installs them all, that is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{component} is missing, and CI must not skip for it")
    pytest.skip(f"{component} is not installed here")
