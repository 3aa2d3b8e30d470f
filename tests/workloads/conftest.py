"""What the tests of all workloads share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def torch_threads():
    """Restore the number of torch's threads, which a training sets."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
