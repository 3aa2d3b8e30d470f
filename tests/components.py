"""What to do when a component is missing on this machine."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(component: str) -> NoReturn:
    """Skip the test because a component is missing. In CI, which installs all components, fail instead."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{component} is missing, and CI must not skip tests")
    pytest.skip(f"{component} is not installed")
