"""`import rlprof.auto` as the first line of a script records it, as `rlprof run` does."""

from __future__ import annotations

import os

from rlprof.recording.environment import switch_on
from rlprof.run.start import start

switch_on(os.environ)
start()
